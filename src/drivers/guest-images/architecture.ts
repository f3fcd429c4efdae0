import { RdError } from '../../errors.ts';

/** Processor architectures of guests, as `uname -m` prints them and images record them. */
export type Architecture = 'x86_64' | 'aarch64';

/** Class and machine of executables in their ELF headers, in hexadecimal digits. */
interface Executables {
  bits: '01' | '02';
  machine: string;
}

/** Architectures whose programs an emulator can run, by the name of the emulator in QEMU. */
export const EXECUTABLES = {
  aarch64: { bits: '02', machine: 'b7' },
  arm: { bits: '01', machine: '28' },
  x86_64: { bits: '02', machine: '3e' },
} as const satisfies Record<string, Executables>;
type Emulated = keyof typeof EXECUTABLES;

/** The facts that depend on the architecture of a guest. */
export interface ArchitectureFacts {
  /** Name of the architecture in `process.arch`. */
  node: NodeJS.Architecture;
  /** Name of the architecture for Debian and container platforms. */
  debian: 'amd64' | 'arm64';
  /** Appended to the names of images, so that a name stands for one architecture. */
  imageSuffix: string;
  /** Foreign programs that run in the guest. */
  emulates: readonly Emulated[];
  /** The QEMU program for the architecture, and its Debian package. */
  qemu: { program: string; package: string };
  /** The argument of `-machine`. */
  machine: string;
  /** Name of the first serial port in the guest's kernel. */
  console: string;
  /** True if the kernel of a guest notices QEMU's power button. */
  powerButton: boolean;
  /** True if memory and processors can be added while the guest runs. */
  hotplug: boolean;
  /** Features of an emulated processor, after `max`. */
  emulatedFeatures: string;
  /** Kernel parameters for an emulated processor only. */
  emulatedKernelLine: string;
}

/**
 * Facts by architecture. arm64: `virt` adds no processors, and memory only with ACPI, which needs firmware; guests boot their kernel directly.
 * Without ACPI the power button is a pin whose driver Debian's cloud kernel lacks. `no_timer_check`: the kernel tests its timer for a few
 * milliseconds, and panics when a busy computer emulates no tick in that time. With KVM it skips that test on its own. `pauth-impdef`: the standard
 * algorithm for pointer authentication takes half of the time of an emulated processor.
 */
export const ARCHITECTURES: Readonly<Record<Architecture, ArchitectureFacts>> = {
  x86_64: {
    node: 'x64',
    debian: 'amd64',
    imageSuffix: '',
    emulates: ['aarch64', 'arm'],
    qemu: { program: 'qemu-system-x86_64', package: 'qemu-system-x86' },
    machine: 'q35',
    console: 'ttyS0',
    powerButton: true,
    hotplug: true,
    emulatedFeatures: '',
    emulatedKernelLine: 'tsc=reliable no_timer_check',
  },
  aarch64: {
    node: 'arm64',
    debian: 'arm64',
    imageSuffix: '-arm64',
    emulates: ['x86_64', 'arm'],
    qemu: { program: 'qemu-system-aarch64', package: 'qemu-system-arm' },
    machine: 'virt,gic-version=max',
    console: 'ttyAMA0',
    powerButton: false,
    hotplug: false,
    emulatedFeatures: ',pauth-impdef=on',
    emulatedKernelLine: '',
  },
};

const NAMES = Object.keys(ARCHITECTURES) as Architecture[];

/**
 * Returns the architecture of guests on a computer, which is its own, or undefined if no guest runs there.
 * @param arch `process.arch`.
 */
export function guestArchitecture(arch: string): Architecture | undefined {
  return NAMES.find((name) => ARCHITECTURES[name].node === arch);
}

/** Returns the architecture with this Debian name, or undefined. */
export function architectureNamed(debian: string): Architecture | undefined {
  return NAMES.find((name) => ARCHITECTURES[name].debian === debian);
}

/** Returns the error for an image that the machine of this computer cannot boot. */
export function foreignImage(
  image: { name: string; architecture: string },
  architecture: Architecture | undefined,
): RdError {
  return new RdError(
    'ERR_DRIVER_TERMINAL',
    `the guest image ${image.name} is for ${image.architecture}, and machines on this computer are ${architecture ?? 'not available'}`,
    { advice: 'Select another one with `rdctl image use`, or build one with `rdctl image build`.' },
  );
}
