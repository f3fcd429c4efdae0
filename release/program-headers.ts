import { checkCodeSignature } from './code-signature.ts';
import type { Target } from './targets.ts';

const ELF_MACHINES = { x64: 62, arm64: 183 };
const MACH_CPUS = { x64: 0x0100_0007, arm64: 0x0100_000c };
const PE_MACHINES = { x64: 0x8664, arm64: 0xaa64 };

/**
 * Looks at the headers of a program for another system, which cannot be run here: its format, its machine, and on macOS the digests of its
 * code signature.
 * @throws Error that says what is wrong.
 */
export function checkProgram(file: Buffer, target: Target): void {
  const wrong = { elf: elf, 'mach-o': machO, pe: pe }[target.format](file, target);
  if (wrong) throw new Error(`the file for ${target.name} ${wrong}`);
}

function elf(file: Buffer, { machine }: Target): string | undefined {
  if (file.readUInt32BE(0) !== 0x7f45_4c46) return 'is not ELF';
  if (file[4] !== 2 || file[5] !== 1) return 'is not for 64 bits, little endian';
  const type = file.readUInt16LE(16);
  // A fixed address or none: both are programs.
  if (type !== 2 && type !== 3) return `is of type ${type}, no program`;
  if (file.readUInt16LE(18) !== ELF_MACHINES[machine]) return `is for machine ${file.readUInt16LE(18)}`;
  return undefined;
}

function machO(file: Buffer, { machine }: Target): string | undefined {
  if (file.readUInt32LE(0) !== 0xfeed_facf) return 'is not Mach-O for 64 bits';
  if (file.readUInt32LE(4) !== MACH_CPUS[machine]) return `is for processor ${file.readUInt32LE(4)}`;
  if (file.readUInt32LE(12) !== 2) return `is of type ${file.readUInt32LE(12)}, no program`;
  return checkCodeSignature(file, machine === 'arm64');
}

function pe(file: Buffer, { machine }: Target): string | undefined {
  if (file.toString('latin1', 0, 2) !== 'MZ') return 'is not a Windows program';
  const at = file.readUInt32LE(0x3c);
  if (file.toString('latin1', at, at + 4) !== 'PE\0\0') return 'has no PE header';
  if (file.readUInt16LE(at + 4) !== PE_MACHINES[machine]) return `is for machine ${file.readUInt16LE(at + 4)}`;
  if ((file.readUInt16LE(at + 22) & 2) === 0) return 'is no program';
  if (file.readUInt16LE(at + 24) !== 0x20b) return 'is not for 64 bits';
  // 3: with a console; 2 would open no terminal.
  if (file.readUInt16LE(at + 24 + 68) !== 3) return 'is not for the console';
  return undefined;
}
