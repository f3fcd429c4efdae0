import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RdError } from '../../../src/errors.ts';
import { prepareKey } from '../../../src/features/snapshots/adoption.ts';
import { readCatalogue, requireOwn } from '../../../src/features/snapshots/catalogue.ts';
import { contentsOf, formatManifest, markOf, savedNames } from '../../../src/features/snapshots/manifest.ts';
import { type FileOperations, fileOperations } from '../../../src/os/atomic-file.ts';
import { diskHeader } from '../../helpers/disk-header.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const { signal } = new AbortController();

/** A snapshot as earlier releases made it. */
async function earlier(root: string, name: string, number: number, mark = 'rdctl-complete.txt', data = diskHeader()) {
  const directory = join(root, `00000000-0000-4000-8000-00000000000${number}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'settings.json'), '{}');
  writeFileSync(join(directory, '0-data.qcow2'), data);
  writeFileSync(join(directory, 'metadata.json'), JSON.stringify({ created: `2026-01-0${number}T00:00:00Z`, name }));
  const parts = [{ name: 'data.qcow2', saved: '0-data.qcow2' }];
  const contents = await contentsOf(directory, savedNames(parts), signal);
  const manifest = formatManifest({ driver: 'qemu', parts, contents });
  writeFileSync(join(directory, 'manifest.json'), manifest);
  writeFileSync(join(directory, mark), markOf(manifest));
  return directory;
}

/** A home with two snapshots of earlier releases, the older of them from before the mark got its own name. */
async function scene() {
  const root = join(temporaryDirectory(), 'snapshots');
  const lines: unknown[][] = [];
  await earlier(root, 'oldest', 1, 'complete.txt');
  const directory = await earlier(root, 'old', 2);
  return {
    root,
    directory,
    lines,
    key: `${root}.key`,
    drop: () => earlier(root, 'dropped', 3),
    prepare: (more: { wasUsed?: boolean; operations?: FileOperations } = {}) =>
      prepareKey({ root, wasUsed: true, log: (...line) => lines.push(line), ...more }),
    async origins() {
      const { snapshots } = await readCatalogue(root);
      return Object.fromEntries(snapshots.map(({ name, foreign = false }) => [name, foreign]));
    },
  };
}

const OWN = { oldest: false, old: false };
const FOREIGN = { oldest: true, old: true };
const adopted = (name: string) => ['info', 'a snapshot of an earlier release is marked as one of this home', { name }];

describe('the snapshots of earlier releases', () => {
  test('get their MAC once, with a line in the log; what comes later without one is foreign', async () => {
    const { root, key, lines, prepare, drop, origins } = await scene();
    expect(await origins()).toEqual(OWN);
    expect(await prepare()).toBeUndefined();
    expect(lines).toEqual([adopted('oldest'), adopted('old')]);
    expect(statSync(key).mode & 0o777).toBe(0o600);
    expect(Object.keys(JSON.parse(readFileSync(key, 'utf8')))).toEqual(['format', 'key']);
    expect(await origins()).toEqual(OWN);
    await drop();
    expect(await prepare()).toBeUndefined();
    expect(await origins()).toEqual({ ...OWN, dropped: true });
    expect(lines).toHaveLength(2);
    expect(readdirSync(join(root, '..')).sort()).toEqual(['snapshots', 'snapshots.key']);
  });

  test('are foreign in a home that was never used', async () => {
    const { prepare, origins, lines } = await scene();
    await prepare({ wasUsed: false });
    expect(await origins()).toEqual(FOREIGN);
    expect(lines).toEqual([]);
  });

  test.each(['before', 'after'] as const)(
    'are marked by the next start when the service is killed %s any write, and nothing else is',
    async (when) => {
      for (let step = 0; ; step += 1) {
        const { key, prepare, drop, origins } = await scene();
        const { operations, struck } = killedAt(step, when);
        await prepare({ operations }).catch(() => undefined);
        if (!struck()) break;
        const hadKey = existsSync(key);
        if (hadKey) await drop();
        expect(await prepare()).toBeUndefined();
        expect(await origins(), `step ${step}`).toEqual(hadKey ? { ...OWN, dropped: true } : OWN);
      }
    },
  );

  test('stay with this home when the disk is full, and are marked by the next start', async () => {
    const { prepare, origins } = await scene();
    const writeNew = async () => {
      throw new RdError('ERR_IO', 'no space');
    };
    expect(await prepare({ operations: { ...fileOperations, writeNew } })).toBe(
      'The key of the snapshots is not ready, so none can be made: no space. Fix this and restart the service.',
    );
    expect(await origins()).toEqual(OWN);
    expect(await prepare()).toBeUndefined();
    expect(await origins()).toEqual(OWN);
  });

  test.each<[string, (directory: string) => void]>([
    [
      'a disk that names another file',
      (directory) => writeFileSync(join(directory, '0-data.qcow2'), diskHeader({ backing: '/etc/passwd' })),
    ],
    ['a disk that is gone', (directory) => rmSync(join(directory, '0-data.qcow2'))],
    ['a manifest that its mark does not know', (directory) => writeFileSync(join(directory, 'manifest.json'), '{}')],
  ])('are foreign with %s, and the others are not', async (_what, change) => {
    const { directory, prepare, origins, lines } = await scene();
    change(directory);
    expect(await prepare()).toBeUndefined();
    expect(await origins()).toEqual({ oldest: false, old: true });
    expect(lines).toEqual([
      adopted('oldest'),
      ['warn', 'a snapshot of an earlier release counts as foreign', { name: 'old', error: expect.any(Error) }],
    ]);
  });

  test('of the compatible application get no MAC and are not called foreign: nothing restores them', async () => {
    const { directory, prepare, origins } = await scene();
    rmSync(join(directory, 'rdctl-complete.txt'));
    rmSync(join(directory, 'manifest.json'));
    writeFileSync(join(directory, 'complete.txt'), '');
    await prepare();
    expect(await origins()).toEqual(OWN);
    expect(existsSync(join(directory, 'rdctl-mac.txt'))).toBe(false);
  });
});

describe('the key', () => {
  test('that is damaged is set aside, and what it had marked is foreign from then on', async () => {
    const { key, prepare, origins } = await scene();
    await prepare();
    for (const text of ['', '{}', '{"key":"00"}']) {
      writeFileSync(key, text);
      expect(await origins()).toEqual(FOREIGN);
      expect(await prepare()).toMatch(/^The key of the snapshots was damaged, is now .+\.corrupt-/);
      expect(await origins()).toEqual(FOREIGN);
    }
  });

  test('that is lost adopts nothing a second time', async () => {
    const { key, prepare, drop, origins } = await scene();
    await prepare();
    await drop();
    rmSync(key);
    await prepare();
    expect(await origins()).toEqual({ ...FOREIGN, dropped: true });
  });

  test('of a newer release is left as it is', async () => {
    const { key, prepare } = await scene();
    writeFileSync(key, '{"format":2}');
    await expect(prepare()).rejects.toMatchObject({ code: 'ERR_OTHER_VERSION' });
    expect(readFileSync(key, 'utf8')).toBe('{"format":2}');
  });

  test('of another home proves nothing here', async () => {
    const [here, there] = [await scene(), await scene()];
    await here.prepare();
    await there.prepare();
    cpSync(there.directory, here.directory, { recursive: true });
    expect(await here.origins()).toEqual({ oldest: false, old: true });
  });
});

test('a foreign snapshot is refused with what it could do and how to go on', () => {
  expect(() => requireOwn({ foreign: true }, false)).toThrow(
    expect.objectContaining({
      code: 'ERR_SNAPSHOT',
      message: expect.stringContaining('can run its containers with the rights of the engine'),
      advice: expect.stringContaining('--foreign'),
    }),
  );
  expect(() => requireOwn({ foreign: true }, true)).not.toThrow();
  expect(() => requireOwn({}, false)).not.toThrow();
});

/** Operations that stop for good at one of them: a killed process does nothing afterwards, not even clean up. */
function killedAt(step: number, when: 'before' | 'after') {
  let count = 0;
  let isDead = false;
  const killed = () => new Error('killed');
  const wrap =
    <A extends unknown[]>(work: (...args: A) => Promise<void>) =>
    async (...args: A): Promise<void> => {
      if (isDead) throw killed();
      isDead = count === step;
      count += 1;
      if (isDead && when === 'before') throw killed();
      await work(...args);
      if (isDead) throw killed();
    };
  const { mkdir, writeNew, rename, syncDirectory, syncFile, unlink } = fileOperations;
  const operations: FileOperations = {
    mkdir: wrap(mkdir),
    writeNew: wrap(writeNew),
    rename: wrap(rename),
    syncDirectory: wrap(syncDirectory),
    syncFile: wrap(syncFile),
    unlink: wrap(unlink),
  };
  return { operations, struck: () => isDead };
}
