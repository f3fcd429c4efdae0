import { lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readLayers } from '../../src/drivers/image-layers/layers.ts';
import { RdError } from '../../src/errors.ts';
import { extensionDirectory, idOf } from '../../src/features/extensions/directory.ts';
import { extract, fullBudget } from '../../src/features/extensions/extract.ts';
import { parseExtensionImage } from '../../src/settings/extension-image.ts';
import { createToken } from '../../src/state/tokens.ts';
import { rounds } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { fingerprint } from '../helpers/user-home.ts';
import { archiveArbitrary, nameArbitrary } from './paths/archives.ts';

/** Directories in which only `inside` may change. */
function place(): { outside: string; inside: string } {
  const outside = temporaryDirectory();
  writeFileSync(join(outside, 'victim'), 'kept');
  mkdirSync(join(outside, 'near'));
  const inside = join(outside, 'near', 'inside');
  mkdirSync(inside);
  return { outside, inside };
}

/** What is around `inside`, and every link below it that leads there. */
function escaped({ outside, inside }: ReturnType<typeof place>, before: Record<string, string>): string[] {
  const top = inside.slice(outside.length + 1);
  const around = Object.entries(fingerprint(outside)).filter(([path]) => path !== top && !path.startsWith(`${top}/`));
  const changed = around.filter(([path, facts]) => before[path] !== facts).map(([path]) => path);
  const root = realpathSync(inside);
  const links = readdirSync(inside, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const path = join(entry.parentPath, entry.name);
    if (lstatSync(path).isFIFO() || lstatSync(path).isSocket()) return [path];
    return lstatSync(path).isSymbolicLink() && !leadsBelow(path, root) ? [path] : [];
  });
  return [...changed, ...links];
}

function leadsBelow(path: string, root: string): boolean {
  try {
    return `${realpathSync(path)}${sep}`.startsWith(`${root}${sep}`);
  } catch {
    // It leads to nothing, or in a circle.
    return true;
  }
}

async function* chunked(archive: Buffer): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < archive.length; at += 700) yield archive.subarray(at, at + 700);
}

/** Runs it; any error but ours is thrown. */
async function accepted(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof RdError) return false;
    throw error;
  }
}

test('an archive of an extension, whatever it names, changes and reaches nothing outside of its directory', async () => {
  const here = place();
  const before = fingerprint(here.outside);
  let extracted = 0;
  let serial = 0;
  await fc.assert(
    fc.asyncProperty(archiveArbitrary(), async (archive) => {
      serial += 1;
      const to = join(here.inside, `e${serial}`);
      if (await accepted(() => extract(chunked(archive), to, fullBudget()))) extracted += 1;
      expect(escaped(here, before)).toEqual([]);
      rmSync(to, { recursive: true, force: true });
    }),
    { numRuns: rounds(400, 20_000), interruptAfterTimeLimit: rounds(15_000, 900_000) },
  );
  expect(extracted).toBeGreaterThan(10);
});

test('the layers of an image, whatever they name, are a tree that an extraction stays in', async () => {
  const here = place();
  const before = fingerprint(here.outside);
  let extracted = 0;
  let serial = 0;
  const paths = fc.oneof(fc.constantFrom('/', '/top', '/ui', 'top/a'), nameArbitrary());
  await fc.assert(
    fc.asyncProperty(fc.array(archiveArbitrary(), { minLength: 1, maxLength: 3 }), paths, async (layers, path) => {
      serial += 1;
      const to = join(here.inside, `e${serial}`);
      const work = async () => {
        const archiveOf = await readLayers(layers.length, (layer) => chunked(layers[layer] ?? Buffer.alloc(0)));
        const archive = await archiveOf(path);
        if (archive) await extract(archive, to, fullBudget());
        return archive;
      };
      if (await accepted(work)) extracted += 1;
      expect(escaped(here, before)).toEqual([]);
      rmSync(to, { recursive: true, force: true });
    }),
    { numRuns: rounds(300, 20_000), interruptAfterTimeLimit: rounds(15_000, 900_000) },
  );
  expect(extracted).toBeGreaterThan(10);
});

test('a name of an extension or a token is one entry of its directory, or is refused', async () => {
  const here = place();
  const before = fingerprint(here.outside);
  const root = join(here.inside, 'extensions');
  const tokens = join(here.inside, 'tokens');
  const createdAt = '2026-01-01T00:00:00Z';
  await fc.assert(
    fc.asyncProperty(nameArbitrary(), async (name) => {
      const at = resolve(root, idOf(name));
      expect([at, `${root}${sep}`].includes(at) && at.slice(root.length + 1).includes(sep)).toBe(false);
      const extension = parseExtensionImage(name)?.name;
      if (extension !== undefined) expect(extension).not.toMatch(/(?:^|\/)\.{0,2}(?:\/|$)|[\\\0]/);
      await accepted(async () => (await extensionDirectory(root).remove(name))());
      await accepted(() => createToken(tokens, { name, scope: 'read', createdAt }));
      expect(escaped(here, before)).toEqual([]);
    }),
    { numRuns: rounds(400, 20_000), interruptAfterTimeLimit: rounds(10_000, 600_000) },
  );
});
