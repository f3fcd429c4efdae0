import { copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import { rdctlProgram } from './cli.ts';
import { linkImages } from './guest-image.ts';

/** What a machine leaves after one start and stop: the keys, and the state of a guest whose engine has run. */
const LEFT = [
  'key',
  'key.pub',
  'host-key',
  'host-key.pub',
  ...['state', 'root.qcow2', 'frozen.json'].map((name) => join('frozen', name)),
];
const BOOT_MS = 600_000;
const POLL_MS = 1_000;

/**
 * Fills the directory of a new machine of the qemu driver, so that its first start resumes one that has booted before, once for all files of
 * a run. It fits machines of the size of `examples/moby.yaml`; others boot.
 */
export async function prepareMachine(directory: string): Promise<void> {
  const first = await bootedOnce(inject('builds'));
  mkdirSync(join(directory, 'frozen'), { recursive: true, mode: 0o700 });
  for (const name of LEFT) linkOrCopy(join(first, name), join(directory, name));
}

/** QEMU opens them read-only, so no machine writes to those of another. */
function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    // Another file system.
    copyFileSync(from, to);
  }
}

/** The directory of a machine that was stopped. The first worker makes it. */
async function bootedOnce(builds: string): Promise<string> {
  const home = join(builds, 'machine');
  const done = join(home, 'done');
  const directory = join(home, 'state', 'drivers', 'qemu');
  const deadline = performance.now() + BOOT_MS;
  try {
    mkdirSync(home);
  } catch {
    while (!existsSync(done)) {
      if (performance.now() > deadline) throw new Error('the first machine of this run did not boot');
      await sleep(POLL_MS);
    }
    return directory;
  }
  linkImages(home);
  const env = { RDCTL_HOME: home, HOME: mkdtempSync(join(tmpdir(), 'rd-user-')) };
  const rdctl = (...argv: string[]) => rdctlProgram(argv, { env });
  expect(await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu')).toMatchObject({ exit: 0 });
  expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
  mkdirSync(done);
  return directory;
}
