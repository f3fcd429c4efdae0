import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { ImageStore } from '../../src/drivers/driver.ts';
import { readLayers } from '../../src/drivers/image-layers/layers.ts';
import { RdError } from '../../src/errors.ts';
import { extensionDirectory } from '../../src/features/extensions/directory.ts';
import { openExtensions } from '../../src/features/extensions/manager.ts';
import { rounds } from '../helpers/rounds.ts';
import { type AnyEntry, packed } from '../helpers/tar.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

type Layer = readonly AnyEntry[] | Buffer;

const META = { icon: '/icon.svg', ui: { tab: { title: 'T', root: '/ui' } }, vm: { composefile: '/compose.yaml' } };
const file = (name: string, text = 'x'): AnyEntry => ({ name, text });
const link = (name: string, linkname: string): AnyEntry => ({ name, type: 'symlink', linkname });
const hard = (name: string, linkname: string): AnyEntry => ({ name, type: 'link', linkname });
const good = (metadata: unknown = META): AnyEntry[] => [
  file('metadata.json', typeof metadata === 'string' ? metadata : JSON.stringify(metadata)),
  file('icon.svg', '<svg/>'),
  file('compose.yaml', 'services: {}'),
];

async function bytesOf(layer: Layer): Promise<Buffer> {
  return Buffer.isBuffer(layer) ? layer : gzipSync(await packed(layer));
}

/** The header of an entry whose content does not follow as declared. */
function head(name: string, size: number, type = '0'): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0);
  block.write('0000644\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write('00000000000\0', 136);
  block.write(type, 156);
  block.write('ustar\x0000', 257);
  block.write(' '.repeat(8), 148);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** Attributes for all later entries, as many as a parser accepts. */
function globalAttributes(): Buffer {
  const records: string[] = [];
  for (let at = 0; records.length < 100_000; at += 1) {
    const rest = ` k${at}=v\n`;
    const length = rest.length + String(rest.length + 2).length;
    records.push(`${length}${rest}`);
  }
  const text = Buffer.from(records.join(''));
  const entries = Array.from({ length: 2_000 }, (_, at) => [
    head(`p${at}`, 512, 'x'),
    Buffer.concat([Buffer.from('9 a=bcde\n'), Buffer.alloc(503)]),
    head(`f${at}`, 0),
  ]).flat();
  return gzipSync(
    Buffer.concat([
      head('g', text.length, 'g'),
      text,
      Buffer.alloc(-text.length & 511),
      ...entries,
      Buffer.alloc(1024),
    ]),
  );
}

/** The defect of an image, and its layers. All are refused. */
const HOSTILE: readonly (readonly [string, () => readonly Layer[]])[] = [
  [
    'a name that leads up below the user interface',
    () => [[...good(), file('ui/a'), link('ui/../../evil', 'x'), link('ui/e', '../../../../evil')]],
  ],
  ['a link out of the tree', () => [[...good(), link('ui/l', '../../../../../etc/passwd')]]],
  ['an absolute link', () => [[...good(), link('ui/l', '/etc/passwd')]]],
  ['links in a chain', () => [[...good(), link('ui/a', '.'), link('ui/b', 'a/../../evil')]]],
  ['a link in circles as the icon', () => [[...good().slice(0, 1), link('icon.svg', 'icon.svg'), file('ui/a')]]],
  [
    'an icon that leads to the host',
    () => [[...good().slice(0, 1), link('icon.svg', '/../../../etc/passwd'), file('ui/a')]],
  ],
  ['a hard link out of the tree', () => [[...good(), hard('ui/h', '../../../../etc/passwd')]]],
  ['a hard link to nothing', () => [[...good(), hard('ui/h', 'none')]]],
  ['a device', () => [[...good(), { name: 'ui/d', type: 'character-device', devmajor: 1, devminor: 5 }]]],
  [
    'a block device as the icon',
    () => [[...good().slice(0, 1), { name: 'icon.svg', type: 'block-device' }, file('ui/a')]],
  ],
  ['a pipe', () => [[...good(), { name: 'ui/p', type: 'fifo' }]]],
  ['a name with controls', () => [[...good(), file('ui/\u001b]0;x\u0007\u009b31m')]]],
  ['a name with a line feed', () => [[...good(), file('ui/a\nb')]]],
  ['a backslash', () => [[...good(), file('ui/..\\evil')]]],
  ['a path of many levels', () => [[...good(), file(`ui/${'d/'.repeat(300)}x`)]]],
  ['a path that is too long', () => [[...good(), file(`ui/${'n'.repeat(5_000)}`)]]],
  [
    'more attributes than any file has',
    () => [
      [
        ...good(),
        { ...file('ui/a'), pax: Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`k${at}`, 'v'])) },
      ],
    ],
  ],
  ['attributes for everything', () => [globalAttributes(), [...good(), file('ui/a')]]],
  [
    'a head that is too large',
    () => [gzipSync(Buffer.concat([head('x', 0o77777777777, 'x'), Buffer.alloc(1024)])), good()],
  ],
  [
    'a file of 8 GiB that is not there',
    () => [[...good()], gzipSync(Buffer.concat([head('ui/a', 0o77777777777), Buffer.alloc(4096)]))],
  ],
  ['a file of 2 GiB of zeros', () => [[...good()], zeros(2 * 1024 ** 3)]],
  ['a layer that breaks off', () => [gzipSync(Buffer.alloc(100_000, 7)).subarray(0, 60)]],
  ['noise', () => [Buffer.from(createHash('sha512').update('noise').digest('hex').repeat(100))]],
  ['zstd that is none', () => [Buffer.concat([Buffer.from('28b52ffd', 'hex'), Buffer.alloc(5_000, 1)])]],
  ['the icon taken away', () => [[...good(), file('ui/a')], [file('.wh.icon.svg', '')]]],
  ['everything taken away', () => [[...good(), file('ui/a')], [file('.wh..wh..opq', '')]]],
  ['whiteouts that lead up', () => [[...good(), file('ui/a')], [file('../../.wh.metadata.json', '')]]],
  ['a file in the place of a directory', () => [[...good(), file('ui/a')], [file('ui', 'x')]]],
  ['the metadata as a directory', () => [[...good(), file('ui/a')], [{ name: 'metadata.json', type: 'directory' }]]],
  ['metadata that is too large', () => [[...good(`{"icon":"${'x'.repeat(2_000_000)}"}`), file('ui/a')]]],
  ['metadata of many levels', () => [[...good(`{"icon":"/icon.svg","x":${'['.repeat(100_000)}`), file('ui/a')]]],
  [
    'metadata with many parts',
    () => [
      [
        ...good({
          ...META,
          ui: Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`t${at}`, { root: '/ui' }])),
        }),
        file('ui/a'),
      ],
    ],
  ],
  ['metadata that leads up', () => [[...good({ ...META, icon: '../../icon.svg' }), file('ui/a')]]],
  ['no user interface where it says', () => [[...good()]]],
  ['many layers', () => Array.from({ length: 200 }, () => good())],
  ['many files', () => [[...good(), ...Array.from({ length: 60_000 }, (_, at) => file(`ui/${at}`, ''))]]],
];

/** One file of zeros, packed piece by piece, because the whole would not fit in memory. */
function zeros(size: number): Buffer {
  const member = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  return Buffer.concat([
    gzipSync(head('ui/zeros', size)),
    ...Array.from({ length: size / (64 * 1024 * 1024) }, () => member),
  ]);
}

/** Texts and modes of all files below a directory. */
function treeOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const path = join(directory, name);
      return `${name} ${statSync(path).mode} ${statSync(path).isFile() ? readFileSync(path, 'utf8') : ''}`;
    });
}

test('hostile images are refused as a whole, without effects outside, and block nothing else', async () => {
  const home = temporaryDirectory();
  const root = join(home, 'extensions');
  mkdirSync(join(home, 'others'));
  for (const name of ['evil', 'others/a']) writeFileSync(join(home, name), 'of others');
  const others = () => treeOf(home).filter((line) => !line.startsWith('extensions'));
  const before = others();

  let layers: Buffer[] = [];
  const store: ImageStore = {
    has: async () => true,
    pull: async () => undefined,
    tags: async () => [],
    async open(_reference, _signal, look) {
      const archive = await readLayers(layers.length, async function* (at) {
        const bytes = layers[at] ?? Buffer.alloc(0);
        for (let from = 0; from < bytes.length; from += 65_536) yield bytes.subarray(from, from + 65_536);
      });
      return look({ labels: {}, archive });
    },
  };
  let installed: Record<string, string> = {};
  const extensions = await openExtensions({
    files: extensionDirectory(root),
    platform: 'linux',
    engine: () => ({ name: 'fake', images: store }),
    settings: () => ({ installed, allowed: { enabled: false, list: [] } }),
    lockedBy: () => undefined,
    async record(change) {
      installed = change(installed);
    },
    fetch: () => Promise.reject(new Error('no network')),
    log: () => undefined,
  });
  extensions.engineIsUp();
  await extensions.idle();

  // A good one first, so that each refusal is due to the defect, and the good one stays unchanged.
  layers = [await bytesOf([...good(), file('ui/index.html')])];
  expect(await extensions.install('good/one:1')).toMatchObject({ outcome: 'installed' });
  const kept = treeOf(root);

  const step = Math.max(1, Math.floor(HOSTILE.length / rounds(15, HOSTILE.length)));
  const first = process.memoryUsage().rss;
  const refused: string[] = [];
  for (const [what, make] of HOSTILE.filter((_, at) => at % step === 0)) {
    layers = await Promise.all(make().map(bytesOf));
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    const outcome = await extensions.install('hostile/image:1').catch((error: unknown) => error);
    delay.disable();
    expect(outcome, what).toBeInstanceOf(RdError);
    // It used to be minutes; fractions of a second depend on how busy this computer is.
    expect(delay.max / 1e6, what).toBeLessThan(5_000);
    expect(treeOf(root), what).toEqual(kept);
    expect(others(), what).toEqual(before);
    refused.push(what);
  }
  expect(refused.length).toBeGreaterThanOrEqual(rounds(15, HOSTILE.length));
  expect(installed).toEqual({ 'good/one': '1' });
  expect(process.memoryUsage().rss - first).toBeLessThan(768 * 1024 * 1024);
  await extensions.close();
});
