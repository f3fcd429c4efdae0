/** The trailer of a handmade binary property list; absent fields are correct. */
export interface BinaryClaims {
  top?: number;
  count?: number;
  table?: number;
  offsetSize?: number;
  referenceSize?: number;
  offsets?: readonly number[];
  header?: string;
}

/** A binary property list of objects as given, valid or not. References are bytes. */
export function binaryPlistOf(objects: readonly (readonly number[])[], claims: BinaryClaims = {}): Buffer {
  const header = Buffer.from(claims.header ?? 'bplist00', 'latin1');
  const offsets: number[] = [];
  let at = header.length;
  for (const object of objects) {
    offsets.push(at);
    at += object.length;
  }
  const width = at > 0xffff ? 4 : 2;
  const table = Buffer.alloc(objects.length * width);
  for (const [index, offset] of (claims.offsets ?? offsets).entries()) table.writeUIntBE(offset, index * width, width);
  const trailer = Buffer.alloc(32);
  trailer.writeUInt8(claims.offsetSize ?? width, 6);
  trailer.writeUInt8(claims.referenceSize ?? 1, 7);
  trailer.writeBigUInt64BE(BigInt(claims.count ?? objects.length), 8);
  trailer.writeBigUInt64BE(BigInt(claims.top ?? 0), 16);
  trailer.writeBigUInt64BE(BigInt(claims.table ?? at), 24);
  return Buffer.concat([header, ...objects.map((object) => Buffer.from(object)), table, trailer]);
}

/** An ASCII string of at most fourteen letters. */
export function text(letters: string): number[] {
  return [0x50 + letters.length, ...Buffer.from(letters, 'latin1')];
}
