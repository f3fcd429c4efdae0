import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { type Accelerator, cpuModel } from './arguments.ts';
import type { HostRun } from './disks.ts';

/** `mov al, 0x10; out 0xf4, al; hlt`, and the mark of a sector that a computer starts from. */
const SECTOR = Buffer.concat([
  Buffer.from([0xb0, 0x10, 0xe6, 0xf4, 0xf4]),
  Buffer.alloc(505),
  Buffer.from([0x55, 0xaa]),
  // The firmware never starts from a disk of one sector.
  Buffer.alloc(2 ** 20 - 512),
]);
/** QEMU ends with twice the value, plus one, that is written to that port. */
const RAN = 0x10 * 2 + 1;
const LIMIT_MS = 20_000;

/**
 * Whether a guest really runs with this accelerator, told by running one of three instructions: the device of KVM can be there and
 * can be opened where every guest dies at once, often of what its processor has. The way there leads through the whole firmware.
 * @param directory a private one, for the guest's disk.
 */
export async function runsGuests(
  accelerator: Accelerator,
  directory: string,
  run: HostRun,
  signal: AbortSignal,
): Promise<boolean> {
  const place = await mkdtemp(join(directory, 'probe-'));
  try {
    const disk = join(place, 'sector');
    await writeFile(disk, SECTOR);
    const { exitCode } = await run(
      [
        'qemu-system-x86_64',
        '-nodefaults',
        '-no-user-config',
        '-machine',
        'q35',
        '-accel',
        accelerator,
        '-cpu',
        cpuModel(accelerator),
        '-m',
        '16',
        '-display',
        'none',
        '-no-reboot',
        '-device',
        'isa-debug-exit,iobase=0xf4,iosize=0x04',
        '-drive',
        `file=${disk.replaceAll(',', ',,')},format=raw,if=none,id=sector`,
        '-device',
        'ide-hd,drive=sector,bootindex=0',
      ],
      { signal, timeoutMs: LIMIT_MS, accept: Array.from({ length: 256 }, (_, status) => status) },
    );
    return exitCode === RAN;
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return false;
    throw error;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

/** The fastest that works here. Asked once; the answer holds until the host starts anew. */
export function accelerators(directory: string, run: HostRun): (signal: AbortSignal) => Promise<Accelerator> {
  let known: Accelerator | undefined;
  return async (signal) => {
    known ??= (await runsGuests('kvm', directory, run, signal)) ? 'kvm' : 'tcg';
    return known;
  };
}
