import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startDaemon } from '../../../os/daemon.ts';
import { DEVICES } from './accelerator.ts';
import { backingOf, type QemuArguments, qemuArguments } from './arguments.ts';
import type { Access } from './confine/access.ts';
import type { MachineParts } from './parts.ts';

/** Starts QEMU, confined to the files of its machine. */
export async function launchQemu(
  parts: Pick<MachineParts, 'places' | 'logFile' | 'environment' | 'confine'> & {
    mounts: Pick<MachineParts['mounts'], 'opened'>;
  },
  input: QemuArguments,
  further: readonly string[] = [],
): Promise<void> {
  const { places, logFile, environment, confine, mounts } = parts;
  const argv = [...qemuArguments(input), ...further];
  await mkdir(places.copies, { recursive: true, mode: 0o700 });
  const access = { ...accessOf(input), shares: await mounts.opened() };
  const wrapper = await confine.wrap(argv, access, 'daemon');
  await startDaemon({ argv, ...wrapper, recordFile: places.qemuRecord, logFile, env: environment });
}

/** Returns the access to the files of a machine, except for directories of the user. Pure. */
function accessOf(input: QemuArguments): Access {
  const {
    image: { directory, files },
    places,
    accelerator,
  } = input;
  const booted = [files.kernel, files.initrd].map(({ name }) => join(directory, name));
  return {
    reads: [...booted, ...backingOf(input), `${places.key}.pub`, places.hostKey, places.hostname],
    writes: [places.disk, places.data, places.serialLog, places.run, places.copies],
    devices: accelerator === 'kvm' ? DEVICES : [],
  };
}
