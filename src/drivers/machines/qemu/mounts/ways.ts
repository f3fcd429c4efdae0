import { RdError } from '../../../../errors.ts';
import { findDaemon, startDaemon } from '../../../../os/daemon.ts';
import { tailOf } from '../../../../os/program-log.ts';
import type { MachineSpec } from '../../../driver.ts';
import { comma } from '../arguments.ts';
import { ownConnection } from '../ssh.ts';
import { parseMounts } from './mount-table.ts';
import { virtiofs } from './virtiofs.ts';
import { isMountType, type MountType, type MountWay, type MountWork, TAG } from './way.ts';

/** The kernel module's maximum; its transport limits packets to less anyway. */
const MAX_BYTES = 2 ** 30;

const FEATURE = '9p';

/** QEMU's own 9p device, which accesses files with the rights of QEMU. */
const nineP: MountWay = {
  type: '9p',
  feature: FEATURE,
  // QEMU cannot save its state while the guest has open files there.
  migration: 'unmounted',
  obstacle: ({ features }) =>
    features.includes(FEATURE)
      ? undefined
      : '9p needs a guest image whose kernel has it (rdctl image build --kernel generic)',
  qemuArguments: ({ real }, { mount }) => [
    '-virtfs',
    `local,path=${comma(real)},mount_tag=${TAG},security_model=${mount.securityModel},multidevs=remap,id=home`,
  ],
  async mount({ home, spec, parts, signal }) {
    const { protocolVersion, msizeInKib, cacheMode } = spec.mount;
    const bytes = Math.min(msizeInKib * 1024, MAX_BYTES);
    const options = ['trans=virtio', `version=${protocolVersion}`, `msize=${bytes}`, `cache=${cacheMode}`];
    await parts.guest.run(['modprobe', '9pnet_virtio'], { signal });
    await parts.guest.run(['mount', '-t', '9p', '-o', options.join(','), '--', TAG, home.real], { signal });
  },
};

const TYPE = 'fuse.sshfs';
const MOUNT_MS = 60_000;
const POLL_MS = 200;
/** Attribute cache in seconds: a change on the host must show in the guest. */
const CACHE_S = 1;
/** With this option sshfs refuses links that lead upwards unless the server is trusted. */
const LINKS = 'no_contain_symlinks';

/**
 * A host sftp server, connected to sshfs in the guest over a dedicated connection: it may break without affecting engines, and never blocks
 * them. Needs no device and no kernel module.
 */
const reverseSshfs: MountWay = {
  type: 'reverse-sshfs',
  daemon: 'into the guest',
  migration: 'unmounted',
  obstacle: ({ sftpServer }) =>
    sftpServer === undefined
      ? 'reverse-sshfs needs sftp-server (apt-get install --no-install-recommends openssh-sftp-server)'
      : undefined,
  qemuArguments: () => [],
  async mount(work) {
    const { home, facts, parts, signal } = work;
    const { places, guest, clock, logFile, environment, port } = parts;
    const { stdout } = await guest.run(['sshfs', '--help'], { accept: [0, 1], signal });
    const options = ['passive', 'allow_other', `fsname=${TAG}`, `dcache_timeout=${CACHE_S}`];
    if (stdout.includes(LINKS)) options.push(LINKS);
    const words = ['sshfs', `:${home.real}`, home.real, '-f', '-o', options.join(',')];
    await startDaemon({
      argv: ownConnection(places, await port(), words),
      partner: [facts.sftpServer ?? 'sftp-server', '-e', '-l', 'ERROR'],
      recordFile: places.homeDaemon,
      logFile,
      env: environment,
    });
    await mounted(work, clock.now() + MOUNT_MS);
  },
};

async function mounted({ home, parts, signal }: MountWork, deadline: number): Promise<void> {
  const { places, guest, clock, logFile } = parts;
  for (;;) {
    const { stdout } = await guest.run(['cat', '/proc/self/mountinfo'], { signal });
    if (parseMounts(stdout).some(({ point, type }) => point === home.real && type === TYPE)) return;
    const ended = (await findDaemon(places.homeDaemon)).state !== 'running';
    if (ended || clock.now() >= deadline) {
      const why = ended ? 'the connection for it ended' : `it was not there after ${MOUNT_MS / 1000} s`;
      throw new RdError('ERR_DRIVER_FAILED', `${home.real} could not be shown in the machine: ${why}`, {
        details: await tailOf(logFile),
        advice: `See ${logFile}.`,
      });
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** Every mount type; a new one is a file and a line here. */
export const MOUNT_WAYS: Readonly<Record<MountType, MountWay>> = {
  'reverse-sshfs': reverseSshfs,
  '9p': nineP,
  virtiofs,
};

/** Pure: the image feature that a mount type requires, if any. */
export function featureFor({ mount }: Pick<MachineSpec, 'mount'>): string | undefined {
  return isMountType(mount.type) ? MOUNT_WAYS[mount.type].feature : undefined;
}
