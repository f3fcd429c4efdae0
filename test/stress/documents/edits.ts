import fc from 'fast-check';
import { PIECES } from './hostile.ts';

interface Edit {
  kind: 'flip' | 'cut' | 'drop' | 'repeat' | 'insert' | 'swap' | 'number';
  /** Places and lengths as parts of the document. */
  at: number;
  long: number;
  byte: number;
  piece: string;
}

const edit = (): fc.Arbitrary<Edit> =>
  fc.record({
    kind: fc.constantFrom('flip', 'cut', 'drop', 'repeat', 'insert', 'swap', 'number'),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    long: fc.double({ min: 0, max: 1, noNaN: true }).map((part) => part ** 4),
    byte: fc.constantFrom(0, 1, 0x0a, 0x1b, 0x22, 0x2f, 0x3c, 0x5b, 0x5c, 0x7b, 0x7f, 0x80, 0xc3, 0xed, 0xfe, 0xff),
    piece: fc.constantFrom(
      ...PIECES,
      '<',
      '/>',
      '</dict>',
      '&lt;',
      '&#0;',
      '<!ENTITY x "y">',
      '[-HKEY_',
      'hex:',
      '../',
      'null',
    ),
  });

/** A valid document with a few mistakes: most of them get past the first check that a document of mere chance fails. */
export function editedArbitrary(samples: readonly Buffer[]): fc.Arbitrary<Buffer> {
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(edit(), { minLength: 1, maxLength: 4 }))
    .map(([sample, edits]) => edits.reduce(edited, sample));
}

function edited(bytes: Buffer, { kind, at, long, byte, piece }: Edit): Buffer {
  const from = Math.floor(at * bytes.length);
  const to = Math.min(bytes.length, from + 1 + Math.floor(long * (bytes.length - from)));
  const [before, part, after] = [bytes.subarray(0, from), bytes.subarray(from, to), bytes.subarray(to)];
  switch (kind) {
    case 'flip':
      return Buffer.concat([before, Buffer.from([byte]), bytes.subarray(from + 1)]);
    case 'cut':
      return before;
    case 'drop':
      return Buffer.concat([before, after]);
    case 'repeat':
      return Buffer.concat([before, ...Array.from({ length: 1 + (byte % 8) }, () => part), after]);
    case 'insert':
      return Buffer.concat([before, Buffer.from(piece), part, after]);
    case 'swap':
      return Buffer.concat([part, before, after]);
    case 'number':
      return Buffer.from(bytes.toString('latin1').replace(/\d+/, String(2 ** (byte % 64) - (byte % 3))), 'latin1');
  }
}
