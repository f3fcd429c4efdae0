/** One entry of a `Registry.pol` file, as it stands there. */
export interface PolInstruction {
  /** Offset of its opening bracket in the file. */
  at: number;
  /** Path of the key below the hive. */
  key: string;
  /** Name of a value, or a control code: `**del.NAME`. */
  name: string;
  /** Number of the type of the value. */
  type: number;
  data: Buffer;
}

/** A place in the file where something else was expected. */
export class PolProblem extends Error {
  readonly at: number;

  constructor(at: number, reason: string) {
    super(reason);
    this.at = at;
  }
}

const SIGNATURE = 'PReg';
const VERSION = 1;

export function isPolFile(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, SIGNATURE.length)).toString('latin1') === SIGNATURE;
}

/**
 * The instructions of a `Registry.pol` file: a signature, a version, and `[key;value;type;size;data]` for each, with signs and
 * texts in UTF-16LE, texts ended by a NUL, and numbers of 32 bits (Windows Protocols, [MS-GPREG] 2.2.1).
 * @throws PolProblem where the file is not of that form.
 */
export function* polInstructions(bytes: Uint8Array): Generator<PolInstruction> {
  const reader = new PolReader(bytes);
  reader.header();
  while (!reader.atEnd()) yield reader.instruction();
}

class PolReader {
  private readonly bytes: Buffer;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  header(): void {
    if (!isPolFile(this.bytes)) throw new PolProblem(0, `the file does not begin with ${SIGNATURE}`);
    this.at = SIGNATURE.length;
    const version = this.number('the version');
    if (version !== VERSION) throw new PolProblem(SIGNATURE.length, `the version is ${version} and not ${VERSION}`);
  }

  atEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  instruction(): PolInstruction {
    const { at } = this;
    this.sign('[');
    const key = this.text('the key');
    this.sign(';');
    const name = this.text('the name');
    this.sign(';');
    const type = this.number('the type');
    this.sign(';');
    const size = this.number('the size');
    this.sign(';');
    if (size > this.bytes.length - this.at) throw new PolProblem(this.at, `${size} bytes are announced and not there`);
    const data = this.bytes.subarray(this.at, this.at + size);
    this.at += size;
    this.sign(']');
    return { at, key, name, type, data };
  }

  private sign(sign: string): void {
    if (this.bytes.toString('utf16le', this.at, this.at + 2) !== sign) {
      throw new PolProblem(this.at, `"${sign}" is missing`);
    }
    this.at += 2;
  }

  private number(what: string): number {
    if (this.at + 4 > this.bytes.length) throw new PolProblem(this.at, `the file ends before ${what}`);
    this.at += 4;
    return this.bytes.readUInt32LE(this.at - 4);
  }

  /** Up to a NUL; brackets and semicolons may be in it. */
  private text(what: string): string {
    const from = this.at;
    for (let end = from; end + 2 <= this.bytes.length; end += 2) {
      if (this.bytes.readUInt16LE(end) !== 0) continue;
      this.at = end + 2;
      return this.bytes.toString('utf16le', from, end);
    }
    throw new PolProblem(from, `${what} does not end`);
  }
}
