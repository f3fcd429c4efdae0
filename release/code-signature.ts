import { createHash } from 'node:crypto';

const LC_CODE_SIGNATURE = 0x1d;
const EMBEDDED = 0xfade_0cc0;
const CODE_DIRECTORY = 0xfade_0c02;
const ADHOC = 2;
const SHA256 = 2;

/** `filesize` of a segment's load command, whose name is at 8. */
const SEGMENT = 0x19;
const FILE_SIZE = 48;

/**
 * Takes the code signature off a Mach-O program, as `codesign --remove-signature` does. The compiler leaves the runtime's own in the file for
 * Intel, where it fits no longer, and macOS ends a program whose signature is wrong; one without is allowed there.
 */
export function withoutCodeSignature(file: Buffer): Buffer {
  const signature = commandOf(file, LC_CODE_SIGNATURE);
  if (signature === undefined) return file;
  const linkedit = commandOf(file, SEGMENT, '__LINKEDIT');
  const [start, length] = [file.readUInt32LE(signature + 8), file.readUInt32LE(signature + 12)];
  const last = signature + 16 === 32 + file.readUInt32LE(20);
  if (!last || linkedit === undefined || start + length !== file.length) {
    throw new Error('the code signature is not at the end of the program');
  }
  const unsigned = Buffer.from(file.subarray(0, start));
  unsigned.writeUInt32LE(file.readUInt32LE(16) - 1, 16);
  unsigned.writeUInt32LE(file.readUInt32LE(20) - 16, 20);
  unsigned.fill(0, signature, signature + 16);
  unsigned.writeBigUInt64LE(file.readBigUInt64LE(linkedit + FILE_SIZE) - BigInt(length), linkedit + FILE_SIZE);
  return unsigned;
}

/**
 * Says what is wrong with the code signature inside a Mach-O file, whose numbers are big endian. Ours are ad hoc: digests of the pages, without
 * a certificate. macOS on arm64 ends a program without one, and anywhere one whose pages have other digests.
 */
export function checkCodeSignature(file: Buffer, isNeeded: boolean): string | undefined {
  const at = signatureOffset(file);
  if (at === undefined) return isNeeded ? 'has no code signature' : undefined;
  if (file.readUInt32BE(at) !== EMBEDDED) return 'has a code signature of an unknown form';
  const count = file.readUInt32BE(at + 8);
  for (let index = 0; index < count; index++) {
    const blob = at + file.readUInt32BE(at + 12 + index * 8 + 4);
    if (file.readUInt32BE(blob) === CODE_DIRECTORY) return checkDirectory(file, blob);
  }
  return 'has a code signature without digests';
}

function signatureOffset(file: Buffer): number | undefined {
  const at = commandOf(file, LC_CODE_SIGNATURE);
  return at === undefined ? undefined : file.readUInt32LE(at + 8);
}

/** Place of a load command. */
function commandOf(file: Buffer, kind: number, segment?: string): number | undefined {
  const commands = file.readUInt32LE(16);
  let at = 32;
  for (let index = 0; index < commands; index++) {
    const name = file.toString('latin1', at + 8, at + 24).replace(/\0+$/, '');
    if (file.readUInt32LE(at) === kind && (segment === undefined || name === segment)) return at;
    at += file.readUInt32LE(at + 4);
  }
  return undefined;
}

function checkDirectory(file: Buffer, at: number): string | undefined {
  const flags = file.readUInt32BE(at + 12);
  const hashes = at + file.readUInt32BE(at + 16);
  const slots = file.readUInt32BE(at + 28);
  const limit = file.readUInt32BE(at + 32);
  const [size, type, , pageBits] = file.subarray(at + 36, at + 40);
  if ((flags & ADHOC) === 0) return 'has a code signature that is not ad hoc';
  if (type !== SHA256 || size !== 32 || pageBits === undefined)
    return 'has a code signature with other digests than SHA-256';
  const page = 2 ** pageBits;
  if (slots !== Math.ceil(limit / page)) return 'has a code signature of fewer pages than the file has';
  if (limit !== signatureOffset(file)) return 'has a code signature that does not cover all of it';
  for (let slot = 0; slot < slots; slot++) {
    const digest = createHash('sha256')
      .update(file.subarray(slot * page, Math.min((slot + 1) * page, limit)))
      .digest();
    if (!digest.equals(file.subarray(hashes + slot * size, hashes + (slot + 1) * size))) {
      return `differs from its code signature at byte ${slot * page}`;
    }
  }
  return undefined;
}
