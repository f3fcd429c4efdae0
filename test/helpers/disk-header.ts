export interface HeaderOptions {
  version?: number;
  /** Size of the disk in bytes. */
  bytes?: number;
  /** A backing file's name, which begins after the extensions. */
  backing?: string;
  clusterBits?: number;
  encryption?: number;
  /** Incompatible features. */
  features?: bigint;
  headerBytes?: number;
  extensions?: readonly (readonly [kind: number, text: string])[];
  /** Whether the last extension is followed by the end of all. */
  ends?: boolean;
}

/** The beginning of a qcow2 disk as in its specification (docs/interop/qcow2.txt in QEMU), without tables. */
export function diskHeader({
  version = 3,
  bytes = 2 ** 30,
  backing = '',
  clusterBits = 16,
  encryption = 0,
  features = 0n,
  headerBytes = version === 2 ? 72 : 104,
  extensions = [],
  ends = true,
}: HeaderOptions = {}): Buffer {
  const header = Buffer.alloc(version === 2 ? 72 : 104);
  header.write('QFI\xfb', 'latin1');
  header.writeUInt32BE(version, 4);
  header.writeUInt32BE(clusterBits, 20);
  header.writeBigUInt64BE(BigInt(bytes), 24);
  header.writeUInt32BE(encryption, 32);
  if (version !== 2) {
    header.writeBigUInt64BE(features, 72);
    header.writeUInt32BE(4, 96);
    header.writeUInt32BE(headerBytes, 100);
  }
  const later = extensions.flatMap(([kind, text]) => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(kind, 0);
    head.writeUInt32BE(Buffer.byteLength(text), 4);
    return [head, Buffer.from(text), Buffer.alloc((8 - (Buffer.byteLength(text) % 8)) % 8)];
  });
  const whole = Buffer.concat([header, ...later, ...(ends ? [Buffer.alloc(8)] : [])]);
  if (backing === '') return whole;
  whole.writeBigUInt64BE(BigInt(whole.length), 8);
  whole.writeUInt32BE(Buffer.byteLength(backing), 16);
  return Buffer.concat([whole, Buffer.from(backing)]);
}
