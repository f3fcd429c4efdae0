import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { withoutCodeSignature } from '../../release/code-signature.ts';
import { checkProgram } from '../../release/program-headers.ts';
import { TARGETS, type Target } from '../../release/targets.ts';

function target(name: string): Target {
  const found = TARGETS.find((each) => each.name === name);
  if (!found) throw new Error(name);
  return found;
}

function elf(machine: number, type = 2): Buffer {
  const file = Buffer.alloc(64);
  file.write('\x7fELF\x02\x01', 'latin1');
  file.writeUInt16LE(type, 16);
  file.writeUInt16LE(machine, 18);
  return file;
}

function pe(machine: number, subsystem = 3): Buffer {
  const file = Buffer.alloc(256);
  file.write('MZ', 'latin1');
  file.writeUInt32LE(64, 0x3c);
  file.write('PE\0\0', 64, 'latin1');
  file.writeUInt16LE(machine, 68);
  file.writeUInt16LE(2, 64 + 22);
  file.writeUInt16LE(0x20b, 64 + 24);
  file.writeUInt16LE(subsystem, 64 + 24 + 68);
  return file;
}

const PAGE = 4096;
const PAGES = 3;

/** A Mach-O program of three pages with a code signature behind them: a link segment, then the command of the signature. */
function machO(cpu: number, { flags = 2 } = {}): Buffer {
  const code = Buffer.alloc(PAGE * PAGES - 100, 'x');
  code.fill(0, 0, 32 + 72 + 16);
  code.writeUInt32LE(0xfeed_facf, 0);
  code.writeUInt32LE(cpu, 4);
  code.writeUInt32LE(2, 12);
  code.writeUInt32LE(2, 16);
  code.writeUInt32LE(72 + 16, 20);
  code.writeUInt32LE(0x19, 32);
  code.writeUInt32LE(72, 36);
  code.write('__LINKEDIT', 40, 'latin1');
  const directory = Buffer.alloc(44 + PAGES * 32);
  const blob = Buffer.alloc(20);
  const length = blob.length + directory.length;
  code.writeBigUInt64LE(BigInt(500 + length), 32 + 48);
  code.writeUInt32LE(0x1d, 104);
  code.writeUInt32LE(16, 108);
  code.writeUInt32LE(code.length, 112);
  code.writeUInt32LE(length, 116);
  blob.writeUInt32BE(0xfade_0cc0, 0);
  blob.writeUInt32BE(length, 4);
  blob.writeUInt32BE(1, 8);
  blob.writeUInt32BE(20, 16);
  directory.writeUInt32BE(0xfade_0c02, 0);
  directory.writeUInt32BE(flags, 12);
  directory.writeUInt32BE(44, 16);
  directory.writeUInt32BE(PAGES, 28);
  directory.writeUInt32BE(code.length, 32);
  directory.set([32, 2, 0, 12], 36);
  for (let page = 0; page < PAGES; page++) {
    directory.set(
      createHash('sha256')
        .update(code.subarray(page * PAGE, (page + 1) * PAGE))
        .digest(),
      44 + page * 32,
    );
  }
  return Buffer.concat([code, blob, directory]);
}

const ARM = 0x0100_000c;
const INTEL = 0x0100_0007;

test.each([
  ['linux-x64', elf(62)],
  ['linux-x64', elf(62, 3)],
  ['linux-arm64', elf(183)],
  ['darwin-arm64', machO(ARM)],
  ['darwin-x64', machO(INTEL)],
  ['darwin-x64', withoutCodeSignature(machO(INTEL))],
  ['windows-x64', pe(0x8664)],
])('%s: a right program', (name, file) => {
  expect(() => checkProgram(file, target(name))).not.toThrow();
});

function changed(file: Buffer, at: number): Buffer {
  const copy = Buffer.from(file);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

test.each<[string, Buffer, string]>([
  ['linux-x64', elf(183), 'is for machine 183'],
  ['linux-x64', elf(62, 1), 'is of type 1, no program'],
  ['linux-x64', pe(0x8664), 'is not ELF'],
  ['windows-x64', pe(0xaa64), 'is for machine 43620'],
  ['windows-x64', pe(0x8664, 2), 'is not for the console'],
  ['windows-x64', elf(62), 'is not a Windows program'],
  ['darwin-arm64', machO(INTEL), 'is for processor 16777223'],
  ['darwin-arm64', changed(machO(ARM), PAGE * 2 + 5), 'differs from its code signature at byte 8192'],
  ['darwin-arm64', machO(ARM, { flags: 0x1_0000 }), 'has a code signature that is not ad hoc'],
  ['darwin-arm64', withoutCodeSignature(machO(ARM)), 'has no code signature'],
  ['darwin-x64', changed(machO(INTEL), PAGE), 'differs from its code signature at byte 4096'],
])('%s: refuses what it is not (%#)', (name, file, message) => {
  expect(() => checkProgram(file, target(name))).toThrow(`the file for ${name} ${message}`);
});

describe('without its code signature a program', () => {
  test('ends before it, and its headers do not name it', () => {
    const signed = machO(INTEL);
    const bare = withoutCodeSignature(signed);
    expect(bare.length).toBe(PAGE * PAGES - 100);
    expect([bare.readUInt32LE(16), bare.readUInt32LE(20)]).toEqual([1, 72]);
    expect(bare.readBigUInt64LE(32 + 48)).toBe(500n);
    expect(bare.subarray(104, 120).every((byte) => byte === 0)).toBe(true);
    expect(bare.subarray(120).equals(signed.subarray(120, bare.length))).toBe(true);
    expect(withoutCodeSignature(bare)).toBe(bare);
  });

  test('is refused where the signature is not its end', () => {
    expect(() => withoutCodeSignature(Buffer.concat([machO(INTEL), Buffer.from('x')]))).toThrow('not at the end');
  });
});
