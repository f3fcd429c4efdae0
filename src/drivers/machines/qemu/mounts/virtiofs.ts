import { rm } from 'node:fs/promises';
import { RdError } from '../../../../errors.ts';
import { findDaemon, startDaemon } from '../../../../os/daemon.ts';
import { tailOf } from '../../../../os/program-log.ts';
import { isThere } from '../../../../os/regular-file.ts';
import { comma } from '../arguments.ts';
import type { HostFacts } from './host-facts.ts';
import { type MountWay, TAG } from './way.ts';

const READY_MS = 20_000;
const POLL_MS = 50;
const MEMORY = 'home-memory';

/** A host program that serves files to the guest through shared guest memory. */
export const virtiofs: MountWay = {
  type: 'virtiofs',
  daemon: 'on this host',
  migration: 'blocked',
  obstacle({ virtiofsd, isRoot }) {
    if (virtiofsd === undefined) return 'virtiofs needs virtiofsd, which is not installed';
    return virtiofsd.dialect === 'qemu' && !isRoot ? `virtiofs needs root, because ${virtiofsd.path} does` : undefined;
  },
  qemuArguments: (_, { memoryGiB }, { homeSocket }) => [
    '-object',
    `memory-backend-memfd,id=${MEMORY},size=${memoryGiB}G,share=on`,
    '-machine',
    `memory-backend=${MEMORY}`,
    '-chardev',
    `socket,id=home,path=${comma(homeSocket)}`,
    '-device',
    `vhost-user-fs-pci,chardev=home,tag=${TAG}`,
  ],
  async begin({ home, facts, parts, signal }) {
    const { places, clock, logFile, environment } = parts;
    await rm(places.homeSocket, { force: true });
    await startDaemon({
      argv: virtiofsdArguments(facts, home.real, places.homeSocket),
      recordFile: places.homeDaemon,
      logFile,
      env: environment,
    });
    const deadline = clock.now() + READY_MS;
    while (!(await isThere(places.homeSocket))) {
      if ((await findDaemon(places.homeDaemon)).state !== 'running' || clock.now() >= deadline) {
        throw new RdError('ERR_DRIVER_FAILED', 'virtiofsd did not get ready', {
          details: await tailOf(logFile),
          advice: `See ${logFile}, or choose another virtualMachine.mount.type.`,
        });
      }
      await clock.sleep(POLL_MS, signal);
    }
  },
  async mount({ home, parts, signal }) {
    await parts.guest.run(['mount', '-t', 'virtiofs', '--', TAG, home.real], { signal });
  },
};

/** Pure. The C and the Rust virtiofsd take different options. */
export function virtiofsdArguments({ virtiofsd, isRoot }: HostFacts, path: string, socket: string): string[] {
  const program = virtiofsd?.path ?? 'virtiofsd';
  if (virtiofsd?.dialect === 'rust') {
    // Only root can confine it to the directory; without that it still follows no link out of it.
    const sandbox = isRoot ? 'namespace' : 'none';
    return [program, `--socket-path=${socket}`, `--shared-dir=${path}`, `--sandbox=${sandbox}`, '--announce-submounts'];
  }
  // A comma ends an option there, and a backslash escapes.
  const source = path.replaceAll(/[\\,]/g, '\\$&');
  return [program, '-f', `--socket-path=${socket}`, '-o', `source=${source}`, '-o', 'announce_submounts'];
}
