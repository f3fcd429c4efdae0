import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { lastLines } from '../../../os/run.ts';
import type { Run } from '../../shell.ts';
import { type Accelerator, cpuModel } from './arguments.ts';

/** `mov al, 0x10; out 0xf4, al; hlt`, and the boot sector signature. */
const SECTOR = Buffer.concat([
  Buffer.from([0xb0, 0x10, 0xe6, 0xf4, 0xf4]),
  Buffer.alloc(505),
  Buffer.from([0x55, 0xaa]),
  // The firmware does not boot from a disk of one sector.
  Buffer.alloc(2 ** 20 - 512),
]);
/** QEMU exits with twice the value written to the port, plus one. */
const GUEST_RAN_STATUS = 0x10 * 2 + 1;
const LIMIT_MS = 20_000;

/** What runs guest instructions on this host. */
export interface Acceleration {
  accelerator: Accelerator;
  /** Why KVM is not used and how to enable it, as a clause. */
  emulatedBecause?: string;
}

/**
 * Whether a guest really runs with this accelerator, tested by running one of three instructions: `/dev/kvm` can exist and be accessible on
 * a host where every guest crashes, usually because of its processor. The test boots through the whole firmware.
 * @param directory a private directory for the test disk.
 * @returns QEMU's error message; undefined when the accelerator works.
 */
export async function accelerationFailure(
  accelerator: Accelerator,
  directory: string,
  run: Run,
  signal: AbortSignal,
): Promise<string | undefined> {
  const place = await mkdtemp(join(directory, 'probe-'));
  try {
    const disk = join(place, 'sector');
    await writeFile(disk, SECTOR);
    const { exitCode, stderr } = await run(
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
    if (exitCode === GUEST_RAN_STATUS) return undefined;
    const message = lastLines(stderr)
      .at(-1)
      ?.replace(/^qemu-system-x86_64: /, '');
    return message ?? `it exited with status ${exitCode} before the guest ran`;
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return error.message;
    throw error;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

/** The fastest accelerator that works here. Probed once per host boot. */
export function accelerators(directory: string, run: Run): (signal: AbortSignal) => Promise<Acceleration> {
  let known: Acceleration | undefined;
  return async (signal) => {
    known ??= accelerationOf(await accelerationFailure('kvm', directory, run, signal));
    return known;
  };
}

function accelerationOf(failure: string | undefined): Acceleration {
  if (failure === undefined) return { accelerator: 'kvm' };
  return { accelerator: 'tcg', emulatedBecause: withRemedy(failure) };
}

/** Adds a remedy to QEMU's error messages about `/dev/kvm`. */
function withRemedy(message: string): string {
  if (/kvm.*no such file/i.test(message)) {
    return 'this host has no /dev/kvm; enable virtualization in its firmware (nested virtualization if this host is a virtual machine) and load kvm_intel or kvm_amd';
  }
  if (/kvm.*permission denied/i.test(message)) {
    return 'the user of the service cannot open /dev/kvm; add the user to the group kvm, log in again and restart the service';
  }
  return `a test guest did not run with KVM; QEMU reported: ${message.replace(/\.+$/, '')}`;
}
