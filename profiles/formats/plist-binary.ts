import { isAscii } from 'node:buffer';
import { MOST_LEVELS } from '../../src/json.ts';
import { quotedName } from '../../src/settings/printable.ts';
import { numberOf, type PlistDictionary, type PlistOther, type PlistValue } from './plist-xml.ts';

/** The last bytes of the file: widths of offsets and references, number of objects, index of the topmost, place of the offsets. */
const TRAILER = 32;
const HEADER = 'bplist00';
/** Values that one reading may produce, keys among them: an object may be referred to often, and lists of lists would multiply. */
const MOST_VALUES = 1_000_000;
/** The same for the units of their texts, which are written out again and again. More than twice the longest file has. */
const MOST_UNITS = 40_000_000;

type Scalar = boolean | number | string | PlistOther;

/**
 * Reads a property list in its binary form, version 00, as `CFBinaryPList.c` of Core Foundation defines it. The libraries `plist` and
 * `bplist-parser` run out of stack on references in circles, keep one of two equal keys, and lose a key `__proto__`.
 * @throws Error with a clause that says what is wrong. No input makes it run for long: references in circles, places outside of
 *   the file and counts larger than the file are refused.
 */
export function binaryPlist(bytes: Uint8Array): PlistValue {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (data.toString('latin1', 0, HEADER.length) !== HEADER) throw new Error('its binary version is unknown');
  if (data.length < HEADER.length + 1 + TRAILER) throw new Error('it ends too early');
  return new Reading(data).value();
}

class Reading {
  readonly #data: Buffer;
  /** Where objects end and offsets begin. */
  readonly #end: number;
  readonly #offsetSize: number;
  readonly #referenceSize: number;
  readonly #count: number;
  readonly #top: number;
  readonly #open = new Set<number>();
  /** What has no others in it is read once. */
  readonly #scalars = new Map<number, Scalar>();
  #values = 0;
  #units = 0;

  constructor(data: Buffer) {
    this.#data = data;
    const trailer = data.subarray(data.length - TRAILER);
    this.#offsetSize = trailer.readUInt8(6);
    this.#referenceSize = trailer.readUInt8(7);
    this.#count = wide(trailer, 8);
    this.#top = wide(trailer, 16);
    this.#end = wide(trailer, 24);
    const last = data.length - TRAILER;
    const sizes = [this.#offsetSize, this.#referenceSize];
    if (sizes.some((size) => size < 1 || size > 8)) throw new Error('its trailer is damaged');
    if (this.#count < 1 || this.#top >= this.#count || this.#end <= HEADER.length || this.#end >= last) {
      throw new Error('its trailer is damaged');
    }
    if (last - this.#end !== this.#count * this.#offsetSize) {
      throw new Error('its table of offsets does not have the declared length');
    }
  }

  value(): PlistValue {
    this.#produces(1);
    return this.#object(this.#top);
  }

  #object(reference: number): PlistValue {
    const known = this.#scalars.get(reference);
    if (known !== undefined) {
      if (typeof known === 'string') this.#writes(known.length);
      return known;
    }
    if (reference >= this.#count) throw new Error('it refers to an object that does not exist');
    const at = number(this.#data, this.#end + reference * this.#offsetSize, this.#offsetSize);
    if (at < HEADER.length || at >= this.#end) throw new Error('an object lies outside of the file');
    const marker = this.#data.readUInt8(at);
    const low = marker & 0x0f;
    switch (marker >> 4) {
      case 0xa:
        return this.#inside(reference, () => this.#references(at, low, 1).map((each) => this.#object(each)));
      case 0xd:
        return this.#inside(reference, () => this.#dictionary(at, low));
    }
    const value = this.#scalar(at, marker);
    this.#scalars.set(reference, value);
    return value;
  }

  #scalar(at: number, marker: number): Scalar {
    const low = marker & 0x0f;
    switch (marker >> 4) {
      case 0x0:
        return simple(marker);
      case 0x1:
        return this.#integer(at, low);
      case 0x2:
        return this.#real(at, low);
      case 0x3:
        return { other: 'a date' };
      case 0x4:
        return { other: 'data' };
      case 0x5:
        return this.#text(at, low, 1);
      case 0x6:
        return this.#text(at, low, 2);
      case 0x8:
        return { other: 'a UID' };
      case 0xb:
      case 0xc:
        return { other: 'a set' };
      default:
        throw new Error('it has an object of an unknown type');
    }
  }

  /** @param width of a unit in bytes: ASCII, or UTF-16 with the high byte first. */
  #text(at: number, low: number, width: 1 | 2): string {
    const bytes = this.#slice(at, low, width);
    this.#writes(bytes.length / width);
    if (width === 2) return Buffer.from(bytes).swap16().toString('utf16le');
    if (!isAscii(bytes)) throw new Error('a string is not ASCII, as it is declared to be');
    return bytes.toString('latin1');
  }

  /** Before anything is made for them, because lists may lie over each other in the file. */
  #produces(values: number): void {
    this.#values += values;
    if (this.#values > MOST_VALUES) throw new Error(`it holds more than ${MOST_VALUES} values`);
  }

  #writes(units: number): void {
    this.#units += units;
    if (this.#units > MOST_UNITS) throw new Error(`its strings have more than ${MOST_UNITS} characters`);
  }

  #dictionary(at: number, low: number): PlistDictionary {
    const references = this.#references(at, low, 2);
    const size = references.length / 2;
    const dictionary = new Map<string, PlistValue>();
    for (let index = 0; index < size; index++) {
      const key = this.#object(references[index] ?? 0);
      if (typeof key !== 'string') throw new Error('a key is not a string');
      if (dictionary.has(key)) throw new Error(`the key ${quotedName(key)} appears twice in one dictionary`);
      dictionary.set(key, this.#object(references[size + index] ?? 0));
    }
    return dictionary;
  }

  #inside<T>(reference: number, read: () => T): T {
    if (this.#open.has(reference)) throw new Error('an object contains itself');
    if (this.#open.size >= MOST_LEVELS) throw new Error(`it nests deeper than ${MOST_LEVELS} levels`);
    this.#open.add(reference);
    const value = read();
    this.#open.delete(reference);
    return value;
  }

  /** Integers of 1, 2 and 4 bytes have no sign, longer ones do. */
  #integer(at: number, low: number): Scalar {
    if (low > 4) throw new Error('it has an integer of an unknown width');
    const bytes = this.#bytes(at + 1, 2 ** low);
    let value = BigInt(`0x${bytes.toString('hex')}`);
    if (low >= 3) value = BigInt.asIntN(bytes.length * 8, value);
    return Number(value);
  }

  #real(at: number, low: number): Scalar {
    if (low === 2) return numberOf(this.#bytes(at + 1, 4).readFloatBE());
    if (low === 3) return numberOf(this.#bytes(at + 1, 8).readDoubleBE());
    throw new Error('it has a number of an unknown width');
  }

  #references(at: number, low: number, each: number): number[] {
    const bytes = this.#slice(at, low, each * this.#referenceSize);
    this.#produces(bytes.length / this.#referenceSize);
    return Array.from({ length: bytes.length / this.#referenceSize }, (_, index) =>
      number(bytes, index * this.#referenceSize, this.#referenceSize),
    );
  }

  /** What follows the marker and its count. */
  #slice(at: number, low: number, unit: number): Buffer {
    if (low < 0x0f) return this.#bytes(at + 1, low * unit);
    const marker = this.#bytes(at + 1, 1).readUInt8();
    const width = 2 ** (marker & 0x0f);
    if (marker >> 4 !== 0x1 || width > 8) throw new Error('it has a count that is not an integer');
    const count = number(this.#bytes(at + 2, width), 0, width);
    return this.#bytes(at + 2 + width, count * unit);
  }

  #bytes(at: number, length: number): Buffer {
    if (at + length > this.#end) throw new Error('an object is longer than the file');
    return this.#data.subarray(at, at + length);
  }
}

function simple(marker: number): Scalar {
  switch (marker) {
    case 0x00:
      return { other: 'null' };
    case 0x08:
      return false;
    case 0x09:
      return true;
    case 0x0c:
    case 0x0d:
      return { other: 'a URL' };
    case 0x0e:
      return { other: 'a UUID' };
    default:
      throw new Error('it has an object of an unknown type');
  }
}

function wide(bytes: Buffer, at: number): number {
  return number(bytes, at, 8);
}

/** Big-endian, without a sign; what is beyond exact numbers is beyond any file too. */
function number(bytes: Buffer, at: number, width: number): number {
  let value = 0;
  for (let index = 0; index < width; index++) value = value * 256 + bytes.readUInt8(at + index);
  return value;
}
