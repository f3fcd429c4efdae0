import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { lastLines, type RunResult } from '../../../os/run.ts';
import { ARCHITECTURES, type Architecture } from '../../guest-images/architecture.ts';
import { type Accelerator, comma, cpuModel, type QemuHost } from './arguments.ts';
import type { ConfinedRun } from './confine/access.ts';

const LIMIT_MS = 20_000;
/** Devices that a machine with hardware acceleration needs. */
export const DEVICES = ['/dev/kvm'];

/** A guest of a few instructions, which proves that it ran. */
interface ProbeGuest {
  /** The first bytes of its file; the others are zero. */
  start: Buffer;
  /** Bytes of its file. */
  size: number;
  /**
   * Returns the arguments of QEMU for a machine that runs it.
   * @param file escaped.
   */
  machine(file: string): string[];
  hasRun(result: Pick<RunResult, 'exitCode' | 'stdout'>): boolean;
}

const PROOF = 'R';

/**
 * Switches to protected mode, and uses an instruction of BMI2 where the processor has it. Some hosts emulate most of what a guest does in its
 * kernel: they run this sector without that instruction, and no kernel, whose decompression has it.
 */
const BOOT_SECTOR = Buffer.from(
  [
    'fa 31c0 8ed8', // cli; xor ax, ax; mov ds, ax
    '0f0116 687c', // lgdt [0x7c68]
    '0f20c0 0c01 0f22c0', // mov eax, cr0; or al, 1; mov cr0, eax
    'ea 177c 0800', // jmp 8:0x7c17, which is 32-bit code
    '66b81000 8ed8', // mov ax, 16; mov ds, ax
    '31c0 0fa2 83f807 721f', // xor eax, eax; cpuid; cmp eax, 7; jb without
    'b807000000 31c9 0fa2 f6c701 7411', // mov eax, 7; xor ecx, ecx; cpuid; test bh, 1; jz without
    'b801000000 b904000000 c4e271f7c0 eb02', // mov eax, 1; mov ecx, 4; shlx eax, eax, ecx; jmp out
    'b010', // without: mov al, 0x10
    'e6f4 f4 000000000000', // out: out 0xf4, al; hlt
    '0000000000000000 ffff0000009acf00 ffff00000092cf00', // descriptors: none, code, data
    '1700 507c0000', // their size less one, and place
  ]
    .join('')
    .replaceAll(' ', ''),
  'hex',
);

const PROBE_GUESTS: Readonly<Record<Architecture, ProbeGuest>> = {
  // The test boots through the whole firmware, which does not boot from a disk of one sector. QEMU exits with twice the value written to the
  // port, plus one.
  x86_64: {
    start: Buffer.concat([BOOT_SECTOR, Buffer.alloc(510 - BOOT_SECTOR.length), Buffer.from([0x55, 0xaa])]),
    size: 2 ** 20,
    machine: (file) => [
      '-m',
      '16',
      '-device',
      'isa-debug-exit,iobase=0xf4,iosize=0x04',
      '-drive',
      `file=${file},format=raw,if=none,id=sector`,
      '-device',
      'ide-hd,drive=sector,bootindex=0',
    ],
    hasRun: ({ exitCode }) => exitCode === 0x10 * 2 + 1,
  },
  // `mov x0, #0x09000000; mov w1, 'R'; strb w1, [x0]`: to the serial port; `mov w0, #0x84000008; hvc #0`: power off; `b .`
  aarch64: {
    start: words(
      0xd2a12000,
      0x52800001 | (PROOF.charCodeAt(0) << 5),
      0x39000001,
      0x52b08000,
      0x72800100,
      0xd4000002,
      0x14000000,
    ),
    size: 28,
    machine: (file) => ['-m', '128', '-serial', 'stdio', '-kernel', file],
    hasRun: ({ exitCode, stdout }) => exitCode === 0 && stdout === PROOF,
  },
};

function words(...code: number[]): Buffer {
  const buffer = Buffer.alloc(4 * code.length);
  code.forEach((word, index) => void buffer.writeUInt32LE(word >>> 0, 4 * index));
  return buffer;
}

/** The executor of guest instructions on this host. */
export interface Acceleration {
  accelerator: Accelerator;
  /** The reason that KVM or HVF is not used and how to enable it, as a clause. */
  emulatedBecause?: string;
}

/**
 * Tests if a guest really runs with this accelerator, by running some instructions: `/dev/kvm` can exist and be accessible on a host where every
 * guest crashes, usually because of its processor.
 * @param directory a private directory for the test guest.
 * @returns QEMU's error message; undefined when the accelerator works.
 */
export async function accelerationFailure(
  architecture: Architecture,
  accelerator: Accelerator,
  directory: string,
  run: ConfinedRun,
  signal: AbortSignal,
): Promise<string | undefined> {
  const place = await mkdtemp(join(directory, 'probe-'));
  try {
    const { qemu, machine } = ARCHITECTURES[architecture];
    const guest = PROBE_GUESTS[architecture];
    const file = join(place, 'guest');
    await writeFile(file, guest.start);
    await truncate(file, guest.size);
    const result = await run(
      [
        qemu.program,
        '-nodefaults',
        '-no-user-config',
        '-machine',
        machine,
        '-accel',
        accelerator,
        '-cpu',
        cpuModel(architecture, accelerator),
        '-display',
        'none',
        '-no-reboot',
        ...guest.machine(comma(file)),
      ],
      {
        // The access that the machine will have: an accelerator that only works unconfined is of no use to it.
        access: { writes: [file], devices: DEVICES },
        signal,
        timeoutMs: LIMIT_MS,
        fatal: 'internal error',
        accept: Array.from({ length: 256 }, (_, status) => status),
      },
    );
    if (guest.hasRun(result)) return undefined;
    const message = lastLines(result.stderr)
      .at(-1)
      ?.replace(/^qemu-system-\w+: /, '');
    return message ?? `it exited with status ${result.exitCode} before the guest ran`;
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return error.details[0] ?? error.message;
    throw error;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

/** Returns the fastest accelerator that works here, probed once per host boot. */
export function accelerators(
  { platform, architecture }: QemuHost,
  directory: string,
  run: ConfinedRun,
): (signal: AbortSignal) => Promise<Acceleration> {
  const accelerator = platform === 'darwin' ? 'hvf' : 'kvm';
  let known: Acceleration | undefined;
  return async (signal) => {
    known ??= accelerationOf(accelerator, await accelerationFailure(architecture, accelerator, directory, run, signal));
    return known;
  };
}

function accelerationOf(accelerator: 'kvm' | 'hvf', failure: string | undefined): Acceleration {
  if (failure === undefined) return { accelerator };
  return { accelerator: 'tcg', emulatedBecause: withRemedy(accelerator, failure) };
}

/** Adds a remedy to QEMU's error messages. */
function withRemedy(accelerator: 'kvm' | 'hvf', message: string): string {
  if (/kvm.*no such file/i.test(message)) {
    return 'this host has no /dev/kvm; enable virtualization in its firmware (nested virtualization if this host is a virtual machine) and load kvm_intel or kvm_amd';
  }
  if (/kvm.*permission denied/i.test(message)) {
    return 'the user of the service cannot open /dev/kvm; add the user to the group kvm, log in again and restart the service';
  }
  return `a test guest did not run with ${accelerator.toUpperCase()}; QEMU reported: ${message.replace(/\.+$/, '')}`;
}
