import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { policyPrograms } from '../../../profiles/policies/places.ts';
import { readPolicies } from '../../../profiles/policies/read.ts';
import { readConnectionFile } from '../../../src/client/connection-file.ts';
import { formatManifest, readManifest } from '../../../src/features/snapshots/manifest.ts';
import { defaultSettings } from '../../../src/settings/defaults.ts';
import { readWholeHistory } from '../../../src/state/history-file.ts';
import { readKept } from '../../../src/state/kept-file.ts';
import { loadSettings } from '../../../src/state/settings-file.ts';
import { loadState } from '../../../src/state/state-file.ts';
import { checkToken } from '../../../src/state/tokens.ts';
import { LABEL, type Reader } from './readers.ts';

const HOST = { platform: 'linux', arch: 'x64' } as const;
const json = (value: unknown) => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);

const TOKEN = `rdctl_t_${'A'.repeat(43)}`;

/** Readers of files, each in a directory of its own. */
export function fileReaders(directory: string): readonly Reader[] {
  const path = join(directory, LABEL);
  const written = (bytes: Buffer, at = path) => {
    writeFileSync(at, bytes, { mode: 0o600 });
    return at;
  };
  const policy = (format: 'json' | 'plist') => async (bytes: Buffer) => {
    const place = { format, defaults: join(directory, 'none'), locked: written(bytes) };
    return readPolicies({ places: [place], programs: policyPrograms() }, HOST);
  };
  return [
    {
      name: 'the settings file',
      samples: [json(defaultSettings(HOST)), json({ version: 4, kubernetes: { memoryInGB: 4 } })],
      read: (bytes) => loadSettings(written(bytes), join(directory, 'none'), HOST),
    },
    { name: 'a policy as JSON', samples: [readFileSync('examples/policies/locked.json')], read: policy('json') },
    {
      name: 'a policy as a property list',
      samples: [readFileSync('examples/policies/io.rancherdesktop.profile.locked.plist')],
      read: policy('plist'),
    },
    {
      name: 'a connection file',
      samples: [json({ user: 'u', password: 'p', port: 6107, host: '127.0.0.1', pid: 1, revision: 1 })],
      read: (bytes) => readConnectionFile(written(bytes), false),
    },
    {
      name: 'the manifest of a snapshot',
      samples: [
        Buffer.from(
          formatManifest({
            driver: 'qemu',
            parts: [{ name: 'disk', saved: 'part-0' }, { name: 'none' }],
            contents: {
              'settings.json': { kind: 'file', size: 1, sha256: 'a'.repeat(64) },
              'part-0': { kind: 'directory' },
              'part-0/a': { kind: 'link', target: 'b' },
            },
          }),
        ),
      ],
      // Whoever writes a snapshot writes its mark as well.
      async read(bytes) {
        written(bytes, join(directory, 'manifest.json'));
        const digest = createHash('sha256').update(bytes.toString('utf8')).digest('hex');
        const manifest = await readManifest(directory, written(Buffer.from(`sha256:${digest}`)));
        const names = [...Object.keys(manifest.contents), ...manifest.parts.flatMap(({ saved }) => saved ?? [])];
        for (const name of names) {
          if (name.split('/').some((part) => /^\.{0,2}$|\0/.test(part))) throw new Error(`accepted ${name}`);
        }
      },
      nameless: true,
    },
    {
      name: 'the history',
      samples: [Buffer.from('{"format":1}\n{"at":"2026-01-01T00:00:00Z","kind":"apply","changes":[]}\n')],
      read: (bytes) => readWholeHistory(written(bytes)),
    },
    {
      name: 'the kept profiles',
      samples: [json({ format: 1, kept: [{ profile: { name: 'a', request: {} }, fields: {} }] })],
      read: (bytes) => readKept(written(bytes)),
    },
    {
      name: 'the state of the service',
      samples: [json({ format: 1, driver: 'qemu', power: 'started', generation: 3, machine: {} })],
      read: (bytes) => loadState(written(bytes)),
    },
    {
      name: 'a token',
      samples: [json({ name: 't', scope: 'read', createdAt: '2026-01-01T00:00:00Z', sha256: 'a'.repeat(64) })],
      async read(bytes) {
        written(bytes, join(directory, 't.json'));
        const { kind } = await checkToken(directory, TOKEN, 0);
        if (kind === 'valid') throw new Error('a token that nobody made is valid');
      },
    },
  ];
}
