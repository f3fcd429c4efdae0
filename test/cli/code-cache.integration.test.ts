import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { builtTool } from '../helpers/built-tool.ts';
import { type Outcome, rdctlProgram } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const tool = builtTool();
const chunk = () => join(tool.folder(), 'validate.cjs');
const cache = () => join(tool.folder(), `validate.${process.version}-${process.arch}.cache`);

/** A command whose chunk is large enough for a cache. */
function validate(): Promise<Outcome> {
  return rdctlProgram(['validate', '-f', 'examples/moby.yaml'], { entry: tool.entry() });
}

/** The code in the cache of this source. */
function code(of = source): Buffer {
  const stored = readFileSync(cache());
  return stored.subarray(of.length, of.length + (stored.length - of.length) / 2);
}

/** Rewrites a cache so that only V8 itself can reject it. */
function forge(data: Buffer, of: Buffer): void {
  writeFileSync(cache(), Buffer.concat([of, data, data]));
}

let good: Outcome;
let source: Buffer;
beforeEach(async () => {
  rmSync(cache(), { recursive: true, force: true });
  source = readFileSync(chunk());
  good = await validate();
  expect(good).toMatchObject({ exit: 0 });
});
afterEach(() => writeFileSync(chunk(), source));

test('the first run writes only the cache; the second reads it and writes nothing', async () => {
  const first = readFileSync(cache());
  expect(first.equals(Buffer.concat([source, code(), code()]))).toBe(true);
  expect(await validate()).toEqual(good);
  expect(readFileSync(cache()).equals(first)).toBe(true);
  expect(
    readdirSync(tool.folder()).filter((name) => name.startsWith('validate.') && name.includes('.cache')),
  ).toHaveLength(1);
});

test('cached code is run when the cache names the source', async () => {
  const { before, after } = sameLength(source);
  writeFileSync(chunk(), after);
  forge(code(), after);
  expect(await validate()).toEqual(good);
  expect(before.equals(after)).toBe(false);
});

test('a changed source is recompiled, even at the same length', async () => {
  const { after, shows } = sameLength(source);
  writeFileSync(chunk(), after);
  const outcome = await validate();
  expect(outcome.out + outcome.err).toContain(shows);
});

describe('a cache that is', () => {
  test.each([0, 1000, -1, -50_000, 'code', 'again'] as const)('damaged at byte %s is not used', async (place) => {
    const bytes = readFileSync(cache());
    const at =
      { code: source.length + 20, again: source.length + code().length + 20 }[place as string] ?? Number(place);
    const byte = at < 0 ? bytes.length + at : at;
    bytes[byte] = (bytes[byte] ?? 0) ^ 0x40;
    writeFileSync(cache(), bytes);
    expect(await validate()).toEqual(good);
    expect(readFileSync(cache()).equals(bytes)).toBe(true);
  });

  test.each([0, 4, 8, 9, 5000])('truncated after %d bytes is not used', async (length) => {
    writeFileSync(cache(), readFileSync(cache()).subarray(0, length));
    expect(await validate()).toEqual(good);
  });

  test('made by another version of V8 is not used', async () => {
    const data = Buffer.from(code());
    // The second word of V8's own header names its version.
    data[5] = (data[5] ?? 0) ^ 0xff;
    forge(data, source);
    expect(await validate()).toEqual(good);
  });

  test('that cannot be read or written is skipped', async () => {
    rmSync(cache());
    mkdirSync(cache());
    expect(await validate()).toEqual(good);
    expect(readdirSync(tool.folder()).filter((name) => name.includes('.cache.'))).toEqual([]);
  });
});

describe.runIf(process.platform !== 'win32')('a cache directory and other users', () => {
  /** Code that names this source but was compiled from another: shows whether it runs. */
  function plant(): void {
    forge(code(), sameLength(source).after);
    writeFileSync(chunk(), sameLength(source).after);
  }
  async function isUsed(): Promise<boolean> {
    const { out, err } = await validate();
    expect(out + err).toMatch(/: valid/i);
    return (out + err).includes(': valid');
  }

  test('is used when only its owner can write to it', async () => {
    plant();
    expect(await isUsed()).toBe(true);
  });

  test.each([0o666, 0o664])('is not used when the file has mode %o', async (mode) => {
    plant();
    chmodSync(cache(), mode);
    expect(await isUsed()).toBe(false);
    // It was recreated, writable by the user alone.
    expect(statSync(cache()).mode & 0o777).toBe(0o644);
  });

  test.each([0o777, 0o1777, 0o775])('is neither used nor created when the directory has mode %o', async (mode) => {
    plant();
    const before = readFileSync(cache());
    chmodSync(tool.folder(), mode);
    try {
      expect(await isUsed()).toBe(false);
      expect(readFileSync(cache()).equals(before)).toBe(true);
    } finally {
      chmodSync(tool.folder(), 0o755);
    }
  });

  test.runIf(process.getuid?.() === 0)('is not used when it belongs to another user', async () => {
    plant();
    chownSync(cache(), 65534, 65534);
    expect(await isUsed()).toBe(false);
  });
});

test.runIf(process.platform !== 'win32')('a build under umask 0 creates nothing that others can write', () => {
  const folder = join(temporaryDirectory(), 'dist');
  execFileSync('sh', [
    '-c',
    'umask 0; exec "$@"',
    'sh',
    process.execPath,
    'build.mjs',
    '--no-cache',
    '--out-dir',
    folder,
  ]);
  const open = ['.', ...readdirSync(folder)].filter((name) => statSync(join(folder, name)).mode & 0o022);
  expect(open).toEqual([]);
});

test('a small chunk is not cached', async () => {
  expect((await rdctlProgram(['version'], { entry: tool.entry() })).exit).toBe(0);
  expect(existsSync(join(tool.folder(), `version.${process.version}-${process.arch}.cache`))).toBe(false);
});

/** The chunk with another word in the message that `validate` prints. */
function sameLength(text: Buffer): { before: Buffer; after: Buffer; shows: string } {
  const before = text.toString('latin1');
  const after = before.replaceAll(': valid', ': VALID');
  return { before: text, after: Buffer.from(after, 'latin1'), shows: ': VALID' };
}
