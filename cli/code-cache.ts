import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';
import * as errors from '../src/errors.ts';

// Loads the chunks of the built tool. `build.mjs` turns each lazy import of the entry into a call of `loadChunk`;
// nothing else uses it, and the source runs without it.

/** Name under which chunks find the error catalog of the entry: a second copy would break `instanceof`. */
const SHARED_ERRORS = 'rdctl:errors';
/** Bytes below which a source compiles faster than its cache can be read. */
const SMALLEST = 24 * 1024;
/** Buffer in which a file is compared: touching memory for the first time costs more than the comparison. */
const PART = Buffer.allocUnsafeSlow(64 * 1024);

type ChunkRequire = (id: string) => unknown;
type Chunk = (
  exports: object,
  require: ChunkRequire,
  module: { exports: object },
  file: string,
  directory: string,
) => void;

/**
 * Loads `NAME.cjs`, the function that Node makes of a module, from the directory, using V8's code cache in `NAME.VERSION-ARCH.cache` if there is one.
 * A missing cache is written on exit; a stale, damaged or foreign-owned one is ignored. Cache problems never cause a failure.
 */
export function loadChunk(directory: string, name: string, require: ChunkRequire): object {
  const file = join(directory, `${name}.cjs`);
  const source = readFileSync(file);
  const run = compile(source, file, join(directory, `${name}.${process.version}-${process.arch}.cache`));
  const module = { exports: {} };
  // Every file of a chunk requires its parts of Node, and each call takes time.
  const known = new Map<string, unknown>([[SHARED_ERRORS, errors]]);
  const shared: ChunkRequire = (id) => {
    if (!known.has(id)) known.set(id, require(id));
    return known.get(id);
  };
  run(module.exports, shared, module, file, directory);
  return module.exports;
}

function compile(source: Buffer, filename: string, cacheFile: string): Chunk {
  // The build emits ASCII only, and the function around it, so that V8 keeps no second copy of a large source.
  const text = source.toString('latin1');
  if (source.length < SMALLEST) return new Script(text, { filename }).runInThisContext();
  const stored = readCache(cacheFile, source);
  const cachedData = stored === 'damaged' ? undefined : stored;
  const script = new Script(text, cachedData ? { filename, cachedData } : { filename });
  if (!stored) atExit(() => writeCache(cacheFile, script.createCachedData(), source));
  return script.runInThisContext();
}

const work: (() => void)[] = [];

/** Runs a function on exit. One listener serves all: from ten on, Node warns the user of a leak. */
function atExit(write: () => void): void {
  if (work.push(write) === 1) process.once('exit', () => work.forEach((each) => void each()));
}

/** Reads a cache only if it belongs to the user or root. Returns `damaged` for a damaged one, and for one of another source. */
function readCache(file: string, source: Buffer): Buffer | 'damaged' | undefined {
  try {
    if (!isOurs(statSync(dirname(file)))) return undefined;
    const handle = openSync(file, 'r');
    try {
      const facts = fstatSync(handle);
      return isOurs(facts) ? (verifyCode(handle, facts.size, source) ?? 'damaged') : undefined;
    } finally {
      closeSync(handle);
    }
  } catch {
    return undefined;
  }
}

/**
 * Returns the compiled code if it is undamaged and of this source: V8 trusts its bytes and can crash on damaged ones. A cache is the source and twice
 * the code, because comparing takes a fiftieth of the time in which Node loads the code for a checksum.
 */
function verifyCode(handle: number, length: number, source: Buffer): Buffer | undefined {
  const size = (length - source.length) / 2;
  if (size <= 0 || !Number.isInteger(size) || !continuesWith(handle, source)) return undefined;
  const code = Buffer.allocUnsafeSlow(size);
  return readSync(handle, code) === size && continuesWith(handle, code) ? code : undefined;
}

function continuesWith(handle: number, expected: Buffer): boolean {
  for (let at = 0; at < expected.length; ) {
    const size = readSync(handle, PART, 0, Math.min(PART.length, expected.length - at), null);
    if (size === 0 || PART.compare(expected, at, at + size, 0, size) !== 0) return false;
    at += size;
  }
  return true;
}

/**
 * Whether a cache is trusted. A file that others can write may contain foreign code. On Windows the bits carry no information, and files inherit the
 * directory's ACL.
 */
function isOurs({ uid, mode }: Stats): boolean {
  const user = process.geteuid?.();
  return user === undefined || ((uid === user || uid === 0) && (mode & 0o022) === 0);
}

function writeCache(file: string, data: Buffer, source: Buffer): void {
  const temporary = `${file}.${process.pid}`;
  try {
    if (!isOurs(statSync(dirname(file)))) return;
    writeFileSync(temporary, Buffer.concat([source, data, data]), { flag: 'wx', mode: 0o644 });
    renameSync(temporary, file);
  } catch {
    // A read-only installation runs without a cache.
    rmSync(temporary, { force: true });
  }
}
