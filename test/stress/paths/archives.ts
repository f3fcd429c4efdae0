import fc from 'fast-check';

const PARTS = [
  ...[
    'top',
    'a',
    'b',
    'ui',
    '..',
    '.',
    '',
    '...',
    '..\\..',
    'victim',
    '.wh.a',
    '.wh..wh..opq',
    'a\0b',
    '\u2025',
    '%2e%2e',
  ],
  ...['C:', '~', '-rf', 'a\nb', 'a\u001b[2J', '\u202e', 'é', 'e\u0301', 'x'.repeat(120), 'con', 'a:b', '*'],
];

/** A path as an attacker writes it: mostly of harmless parts, so that others get in with them. */
export function nameArbitrary(): fc.Arbitrary<string> {
  const part = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom('top', 'a', 'b', 'ui') },
    { weight: 2, arbitrary: fc.constantFrom(...PARTS) },
  );
  return fc
    .tuple(
      fc.constantFrom('', '', '', '', './', '/', '//', '../', '../../'),
      fc.array(part, { minLength: 1, maxLength: 5 }),
      fc.constantFrom('', '', '', '/', '/.'),
    )
    .map(([begin, parts, end]) => `${begin}${parts.join('/')}${end}`);
}

interface Entry {
  name: string;
  type: string;
  link: string;
  text: string;
  /** What the header says of the size, if not the truth. */
  size: string | undefined;
  attributes: readonly string[];
}

const entry = (): fc.Arbitrary<Entry> =>
  fc.record({
    name: fc.oneof(
      { weight: 3, arbitrary: nameArbitrary().map((name) => `top/${name}`) },
      { weight: 1, arbitrary: nameArbitrary() },
    ),
    // A file, hard and symbolic links, devices, a directory, a pipe, and what few readers know.
    type: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom('0', '2', '5') },
      { weight: 1, arbitrary: fc.constantFrom('1', '3', '4', '6', '7', 'L', 'K', 'x', 'g', 'S', 'Z', '\0') },
    ),
    link: nameArbitrary(),
    text: fc.constantFrom('', 'x', 'x'.repeat(600)),
    size: fc.oneof(
      { weight: 20, arbitrary: fc.constant(undefined) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          '',
          'zzzzzzzzzzz',
          '77777777777',
          '-0000000001',
          `\x81${'\0'.repeat(11)}`,
          '\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff',
        ),
      },
    ),
    attributes: fc.oneof(
      { weight: 8, arbitrary: fc.constant([]) },
      {
        weight: 1,
        arbitrary: fc.array(
          fc.oneof(
            nameArbitrary().map((name) => `path=${name}`),
            nameArbitrary().map((name) => `linkpath=${name}`),
            fc.constantFrom('size=x', 'size=-1', 'size=1e9', 'path=', 'mode=0', 'GNU.sparse.name=../x', '=', 'a'),
          ),
          { minLength: 1, maxLength: 3 },
        ),
      },
    ),
  });

/** A tar archive of an attacker: any names, types, links and sizes, and sometimes no end. */
export function archiveArbitrary(): fc.Arbitrary<Buffer> {
  return fc
    .tuple(fc.array(entry(), { minLength: 1, maxLength: 4 }), fc.integer({ min: 0, max: 40 }))
    .map(([entries, cut]) => {
      const blocks = [...entries.flatMap(bytesOf), Buffer.alloc(1024)];
      const whole = Buffer.concat(blocks);
      return cut === 0 ? whole.subarray(0, Math.floor(whole.length / 2)) : whole;
    });
}

function bytesOf({ name, type, link, text, size, attributes }: Entry): Buffer[] {
  const records = Buffer.from(attributes.map(recordOf).join(''));
  const before = attributes.length === 0 ? [] : [header('pax', 'x', '', octal(records.length)), padded(records)];
  // Only what is stored has content; the size of another kind is a lie of some writers.
  const content = Buffer.from('0LKxg7'.includes(type) ? text : '');
  return [...before, header(name, type, link, size ?? octal(content.length)), padded(content)];
}

function recordOf(text: string): string {
  const rest = ` ${text}\n`;
  const length = Buffer.byteLength(rest);
  const digits = String(length + 1).length;
  return `${String(length + digits)}${rest}`;
}

function octal(size: number): string {
  return size.toString(8).padStart(11, '0');
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc(-content.length & 511)]);
}

function header(name: string, type: string, link: string, size: string): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0, 100);
  block.write('0000644\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(size, 124, 12, 'latin1');
  block.write('00000000000\0', 136);
  block.write(type, 156);
  block.write(link, 157, 100);
  block.write('ustar\x0000', 257);
  block.write(' '.repeat(8), 148);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
