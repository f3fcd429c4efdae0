import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';
import * as errors from '../src/errors.ts';

// Loads the parts of the built tool. `build.mjs` turns each lazy import of the entry into a call of `loadChunk`; nothing else
// knows of it, and the source runs without it.

/** Name under which chunks find the error catalogue of the entry: a second copy would be another class to `instanceof`. */
const SHARED_ERRORS = 'rdctl:errors';
/** Smaller sources compile faster than a cache is read. */
const SMALLEST = 24 * 1024;
const HEADER = 8;

type ChunkRequire = (id: string) => unknown;
type Chunk = (
  exports: object,
  require: ChunkRequire,
  module: { exports: object },
  file: string,
  directory: string,
) => void;

/**
 * Loads `NAME.cjs` of the directory, with the code that V8 compiled in an earlier run when `NAME.VERSION-ARCH.cache` holds
 * it. A cache that is missing is written when the process ends; one that does not belong to the source, is damaged, comes
 * from another V8, or could have been written by another user is not used. Never fails because of a cache.
 */
export function loadChunk(directory: string, name: string, require: ChunkRequire): object {
  const file = join(directory, `${name}.cjs`);
  const source = readFileSync(file);
  const run = compile(source, file, join(directory, `${name}.${process.version}-${process.arch}.cache`));
  const module = { exports: {} };
  const shared: ChunkRequire = (id) => (id === SHARED_ERRORS ? errors : require(id));
  run(module.exports, shared, module, file, directory);
  return module.exports;
}

function compile(source: Buffer, filename: string, cacheFile: string): Chunk {
  // The build writes ASCII only.
  const text = `(function (exports, require, module, __filename, __dirname) {${source.toString('latin1')}\n})`;
  if (source.length < SMALLEST) return new Script(text, { filename }).runInThisContext();
  const stored = readCache(cacheFile);
  const cachedData = stored && verified(stored, source);
  const script = new Script(text, cachedData ? { filename, cachedData } : { filename });
  if (!stored) process.once('exit', () => writeCache(cacheFile, script.createCachedData(), source));
  return script.runInThisContext();
}

/** Code is taken from nobody but the user and root. */
function readCache(file: string): Buffer | undefined {
  try {
    if (!isOurs(statSync(dirname(file)))) return undefined;
    const handle = openSync(file, 'r');
    try {
      return isOurs(fstatSync(handle)) ? readFileSync(handle) : undefined;
    } finally {
      closeSync(handle);
    }
  } catch {
    return undefined;
  }
}

/** Whoever may write it else can have put code there. On Windows the bits say nothing, and the files have the access list of their directory. */
function isOurs({ uid, mode }: Stats): boolean {
  const user = process.geteuid?.();
  return user === undefined || ((uid === user || uid === 0) && (mode & 0o022) === 0);
}

/** V8 trusts the bytes of a cache and can crash on damaged ones, so they are checked here, and the source with them. */
function verified(stored: Buffer, source: Buffer): Buffer | undefined {
  if (stored.length <= HEADER) return undefined;
  const data = stored.subarray(HEADER);
  const { crc32 } = process.getBuiltinModule('node:zlib');
  return stored.readUInt32LE(0) === crc32(source) && stored.readUInt32LE(4) === crc32(data) ? data : undefined;
}

function writeCache(file: string, data: Buffer, source: Buffer): void {
  const { crc32 } = process.getBuiltinModule('node:zlib');
  const header = Buffer.alloc(HEADER);
  header.writeUInt32LE(crc32(source), 0);
  header.writeUInt32LE(crc32(data), 4);
  const temporary = `${file}.${process.pid}`;
  try {
    if (!isOurs(statSync(dirname(file)))) return;
    writeFileSync(temporary, Buffer.concat([header, data]), { flag: 'wx', mode: 0o644 });
    renameSync(temporary, file);
  } catch {
    // An installation that belongs to somebody else works without.
    rmSync(temporary, { force: true });
  }
}
