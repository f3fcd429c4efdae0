const HEADER = 4096;
const BIN = 4096;
const NOTHING = 0xffff_ffff;

/** Offsets count from the end of the header; the first 32 bytes of a bin are its own header. */
const ROOT = 0x20;
const ROOT_NAME = 'root';

/**
 * A registry hive with an empty root key, as the hivex programs open it: a header with a checksum and one bin with the key, its
 * security descriptor and the remaining space.
 */
export function emptyHive(): Buffer {
  const hive = Buffer.alloc(HEADER + BIN);
  const rootSize = cellSize(76 + ROOT_NAME.length);
  const security = ROOT + rootSize;
  const descriptor = everyone();
  const securitySize = cellSize(20 + descriptor.length);
  writeHeader(hive.subarray(0, HEADER));
  const bin = hive.subarray(HEADER);
  bin.write('hbin', 0, 'latin1');
  bin.writeUInt32LE(BIN, 8);
  writeKey(bin.subarray(ROOT, ROOT + rootSize), security);
  writeSecurity(bin.subarray(security, security + securitySize), security, descriptor);
  const free = security + securitySize;
  // Free cells have a positive size, used ones a negative size.
  bin.writeInt32LE(BIN - free, free);
  return hive;
}

/** With the size in front, in multiples of eight bytes. */
function cellSize(content: number): number {
  return Math.ceil((content + 4) / 8) * 8;
}

function writeHeader(header: Buffer): void {
  header.write('regf', 0, 'latin1');
  header.writeUInt32LE(1, 4);
  header.writeUInt32LE(1, 8);
  header.writeUInt32LE(1, 20);
  header.writeUInt32LE(3, 24);
  header.writeUInt32LE(1, 32);
  header.writeUInt32LE(ROOT, 36);
  header.writeUInt32LE(BIN, 40);
  header.writeUInt32LE(1, 44);
  let sum = 0;
  for (let at = 0; at < 508; at += 4) sum ^= header.readUInt32LE(at);
  header.writeUInt32LE(sum >>> 0, 508);
}

function writeKey(cell: Buffer, security: number): void {
  cell.writeInt32LE(-cell.length, 0);
  cell.write('nk', 4, 'latin1');
  // The root of a hive: not deletable, name in one byte per character.
  cell.writeUInt16LE(0x2c, 6);
  cell.writeUInt32LE(NOTHING, 20);
  for (const list of [32, 36, 44, 52]) cell.writeUInt32LE(NOTHING, list);
  cell.writeUInt32LE(security, 48);
  cell.writeUInt16LE(ROOT_NAME.length, 76);
  cell.write(ROOT_NAME, 80, 'latin1');
}

/** The only descriptor: in the ring of descriptors it is its own neighbor. */
function writeSecurity(cell: Buffer, offset: number, descriptor: Buffer): void {
  cell.writeInt32LE(-cell.length, 0);
  cell.write('sk', 4, 'latin1');
  cell.writeUInt32LE(offset, 8);
  cell.writeUInt32LE(offset, 12);
  cell.writeUInt32LE(1, 16);
  cell.writeUInt32LE(descriptor.length, 20);
  descriptor.copy(cell, 24);
}

/** A self-relative security descriptor without owner, group and lists, which allows everything to everyone. */
function everyone(): Buffer {
  const descriptor = Buffer.alloc(20);
  descriptor.writeUInt8(1, 0);
  descriptor.writeUInt16LE(0x8000, 2);
  return descriptor;
}
