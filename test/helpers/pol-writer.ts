/** One entry of a policy file for tests: a name may be a control code. */
export interface PolEntry {
  key: string;
  name: string;
  type: number;
  data: Buffer;
}

/** A `Registry.pol` file, as "Registry Policy File Format" of the Windows documentation describes it. */
export function polFile(entries: readonly PolEntry[], version = 1): Buffer {
  const signature = Buffer.alloc(8);
  signature.writeUInt32LE(0x6765_5250, 0);
  signature.writeUInt32LE(version, 4);
  return Buffer.concat([signature, ...entries.map(entryBytes)]);
}

function entryBytes({ key, name, type, data }: PolEntry): Buffer {
  const fields = [wide(`${key}\0`), wide(`${name}\0`), dword(type), dword(data.length), data];
  const separated = fields.flatMap((field, index) => (index === 0 ? [field] : [wide(';'), field]));
  return Buffer.concat([wide('['), ...separated, wide(']')]);
}

export const polText = (key: string, name: string, text: string): PolEntry => ({
  key,
  name,
  type: 1,
  data: wide(`${text}\0`),
});

export const polNumber = (key: string, name: string, value: number): PolEntry => ({
  key,
  name,
  type: 4,
  data: dword(value),
});

export const polList = (key: string, name: string, texts: readonly string[]): PolEntry => ({
  key,
  name,
  type: 7,
  data: wide([...texts, ''].map((text) => `${text}\0`).join('')),
});

function wide(text: string): Buffer {
  return Buffer.from(text, 'utf16le');
}

function dword(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
