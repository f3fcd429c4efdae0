const BASE = 0x400000;
const HEADERS = 64 + 56;
/** `write(1, text, length)` and `exit(0)`; the text follows the code. */
const CODE_LENGTH = 32;

/** A static executable for Linux on arm64 that prints a text. */
export function arm64Program(text: string): Buffer {
  const bytes = Buffer.from(text);
  const movz = (register: number, value: number) => (0xd2800000 | (value << 5) | register) >>> 0;
  const adrX1 = 0x10000000 | (((CODE_LENGTH - 4) >> 2) << 5) | 1;
  const system = 0xd4000001;
  const code = [movz(0, 1), adrX1, movz(2, bytes.length), movz(8, 64), system, movz(0, 0), movz(8, 93), system];
  const size = HEADERS + CODE_LENGTH + bytes.length;
  const program = Buffer.alloc(size);
  program.write('7f454c46020101', 'hex');
  const half = (at: number, value: number) => program.writeUInt16LE(value, at);
  const long = (at: number, value: number) => program.writeBigUInt64LE(BigInt(value), at);
  half(16, 2); // an executable
  half(18, 0xb7); // AArch64
  program.writeUInt32LE(1, 20);
  long(24, BASE + HEADERS);
  long(32, 64);
  half(52, 64);
  half(54, 56);
  half(56, 1);
  half(58, 64);
  // One segment to load, read and executed.
  program.writeUInt32LE(1, 64);
  program.writeUInt32LE(5, 68);
  long(80, BASE);
  long(88, BASE);
  long(96, size);
  long(104, size);
  long(112, 0x1000);
  code.forEach((word, index) => void program.writeUInt32LE(word, HEADERS + 4 * index));
  bytes.copy(program, HEADERS + CODE_LENGTH);
  return program;
}
