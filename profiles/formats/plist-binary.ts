import { isAscii } from 'node:buffer';
import { MOST_LEVELS } from '../../src/json.ts';
import { quoteName } from '../../src/settings/printable.ts';
import { numberOf, type PlistDictionary, type PlistValue } from './plist-xml.ts';

/** Bytes at the end of the file: widths of offsets and references, number of objects, index of the top object, position of the offset table. */
const TRAILER = 32;
const HEADER = 'bplist00';
/** Maximum number of values, including keys. Objects may be referenced repeatedly, so nested lists could multiply. */
const MAX_VALUES = 1_000_000;
/** Maximum total UTF-16 units of strings, which repeat with every reference. More than twice the units of the largest file. */
const MAX_UNITS = 40_000_000;

/** Types that no setting can have, by marker. */
const OTHERS: Readonly<Record<number, string>> = { 0: 'null', 12: 'a URL', 13: 'a URL', 14: 'a UUID' };
const UNSUPPORTED_TYPES: Readonly<Record<number, string>> = {
  3: 'a date',
  4: 'data',
  8: 'a UID',
  11: 'a set',
  12: 'a set',
};

/**
 * Reads a property list in its binary form, version 00, as `CFBinaryPList.c` of Core Foundation defines it. The libraries `plist` and
 * `bplist-parser` overflow the stack on circular references, accept duplicate keys, and lose a key `__proto__`. Nesting and the size of the
 * result are limited, so no input can make this run for long.
 * @throws Error with a clause that describes the problem.
 */
export function binaryPlist(bytes: Uint8Array): PlistValue {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (data.toString('latin1', 0, HEADER.length) !== HEADER) throw new Error('its binary version is unknown');
  if (data.length < HEADER.length + 1 + TRAILER) throw new Error('it is damaged: it ends too early');
  return new Reader(data).value();
}

class Reader {
  readonly #data: Buffer;
  /** Offset at which the objects end and the offset table begins. */
  readonly #end: number;
  readonly #offsetSize: number;
  readonly #referenceSize: number;
  readonly #count: number;
  readonly #top: number;
  #level = 0;
  #values = 0;
  #units = 0;

  constructor(data: Buffer) {
    this.#data = data;
    const last = data.length - TRAILER;
    this.#offsetSize = data.readUInt8(last + 6);
    this.#referenceSize = data.readUInt8(last + 7);
    this.#count = numberAt(data, last + 8, 8);
    this.#top = numberAt(data, last + 16, 8);
    this.#end = numberAt(data, last + 24, 8);
    const sound =
      [this.#offsetSize, this.#referenceSize].every((size) => size >= 1 && size <= 8) &&
      this.#end > HEADER.length &&
      last - this.#end === this.#count * this.#offsetSize;
    if (!sound) throw damageError(last);
  }

  value(): PlistValue {
    this.#produce(1);
    return this.#object(this.#top);
  }

  #object(reference: number): PlistValue {
    const entry = this.#end + reference * this.#offsetSize;
    if (reference >= this.#count) throw damageError(entry);
    const at = numberAt(this.#data, entry, this.#offsetSize);
    if (at < HEADER.length || at >= this.#end) throw damageError(entry);
    const marker = this.#data.readUInt8(at);
    const kind = marker >> 4;
    const low = marker & 0x0f;
    const other = kind === 0 ? OTHERS[marker] : UNSUPPORTED_TYPES[kind];
    if (other !== undefined) return { other };
    if (marker === 0x08 || marker === 0x09) return marker === 0x09;
    if (kind === 0x1 && low <= 4) return this.#integer(at, 2 ** low);
    if (marker === 0x22) return numberOf(this.#bytes(at + 1, 4).readFloatBE());
    if (marker === 0x23) return numberOf(this.#bytes(at + 1, 8).readDoubleBE());
    if (kind === 0x5 || kind === 0x6) return this.#string(at, kind === 0x5 ? 1 : 2);
    if (kind !== 0xa && kind !== 0xd) throw damageError(at);
    // Stops a list that contains itself, too.
    if (this.#level >= MOST_LEVELS) throw new Error(`it nests deeper than ${MOST_LEVELS} levels`);
    this.#level += 1;
    const value = kind === 0xa ? this.#references(at, 1).map((each) => this.#object(each)) : this.#dictionary(at);
    this.#level -= 1;
    return value;
  }

  /** Reads an integer: those of 1, 2 and 4 bytes are unsigned, longer ones are signed. */
  #integer(at: number, width: number): number {
    const value = BigInt(`0x${this.#bytes(at + 1, width).toString('hex')}`);
    return Number(width < 8 ? value : BigInt.asIntN(width * 8, value));
  }

  /** Reads a string. @param width bytes per unit: 1 for ASCII, 2 for big-endian UTF-16. */
  #string(at: number, width: 1 | 2): string {
    const bytes = this.#contents(at, width);
    this.#units += bytes.length / width;
    if (this.#units > MAX_UNITS) throw new Error(`its strings have more than ${MAX_UNITS} characters`);
    if (width === 2) return Buffer.from(bytes).swap16().toString('utf16le');
    if (!isAscii(bytes)) throw damageError(at);
    return bytes.toString('latin1');
  }

  #dictionary(at: number): PlistDictionary {
    const references = this.#references(at, 2);
    const size = references.length / 2;
    const dictionary = new Map<string, PlistValue>();
    for (let index = 0; index < size; index++) {
      const key = this.#object(references[index] ?? 0);
      if (typeof key !== 'string') throw new Error('a key is not a string');
      if (dictionary.has(key)) throw new Error(`the key ${quoteName(key)} appears twice in one dictionary`);
      dictionary.set(key, this.#object(references[size + index] ?? 0));
    }
    return dictionary;
  }

  #references(at: number, each: number): number[] {
    const bytes = this.#contents(at, each * this.#referenceSize);
    const count = bytes.length / this.#referenceSize;
    this.#produce(count);
    return Array.from({ length: count }, (_, index) =>
      numberAt(bytes, index * this.#referenceSize, this.#referenceSize),
    );
  }

  /** Counts values before anything is allocated, because lists may overlap in the file. */
  #produce(values: number): void {
    this.#values += values;
    if (this.#values > MAX_VALUES) throw new Error(`it holds more than ${MAX_VALUES} values`);
  }

  /** Returns the content after the marker and its length. */
  #contents(at: number, unit: number): Buffer {
    const low = this.#data.readUInt8(at) & 0x0f;
    if (low < 0x0f) return this.#bytes(at + 1, low * unit);
    const marker = this.#bytes(at + 1, 1).readUInt8();
    const width = 2 ** (marker & 0x0f);
    if (marker >> 4 !== 0x1 || width > 8) throw damageError(at);
    return this.#bytes(at + 2 + width, numberAt(this.#bytes(at + 2, width), 0, width) * unit);
  }

  #bytes(at: number, length: number): Buffer {
    if (at + length > this.#end) throw damageError(at);
    return this.#data.subarray(at, at + length);
  }
}

function damageError(at: number): Error {
  return new Error(`it is damaged at byte ${at}`);
}

/** Reads a big-endian unsigned number. Values beyond the exact range are beyond the end of any file, too. */
function numberAt(bytes: Buffer, at: number, width: number): number {
  let value = 0;
  for (let index = 0; index < width; index++) value = value * 256 + bytes.readUInt8(at + index);
  return value;
}
