import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LoadContext, loadDesired, mergeOver } from '../../profiles/document/load.ts';
import type { JsonObject } from '../../src/json.ts';
import { runs } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PROFILE = 'apiVersion: rdctl/v1\nkind: Profile\n';

async function load(texts: string | Record<string, string>, context: Partial<LoadContext> = {}) {
  const cwd = temporaryDirectory();
  const files = typeof texts === 'string' ? { 'p.yaml': texts } : texts;
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  const stdin = async () => Buffer.alloc(0);
  const loaded = await loadDesired(Object.keys(files), {
    cwd,
    env: {},
    platform: 'linux',
    arch: 'x64',
    readStdin: stdin,
    ...context,
  });
  return { ...loaded, cwd };
}

function places(findings: readonly { line?: number; column?: number; pointer: string }[]) {
  return findings.map(({ line, column, pointer }) => `${line}:${column} ${pointer}`);
}

describe('forms', () => {
  test('bare settings leave the power state unmanaged', async () => {
    const { desired } = await load('version: 19\nimages: { showAll: false }\n');
    expect(desired?.request).toEqual({
      settings: { version: 19, images: { showAll: false } },
      state: 'unmanaged',
      prune: [],
      wishes: [],
    });
  });

  test('a profile manages everything it mentions, and nothing else', async () => {
    const { desired } = await load(`${PROFILE}settings: { version: 19, images: { showAll: true } }`);
    expect(desired?.request.wishes).toEqual(['images.showAll']);
  });

  test('a profile that does not mention the power state leaves it unmanaged', async () => {
    expect((await load(`${PROFILE}settings: { version: 19 }`)).desired?.request.state).toBe('unmanaged');
    expect((await load(`${PROFILE}settings: { version: 19 }\nstate: stopped`)).desired?.request.state).toBe('stopped');
  });

  test('everything around the settings is kept', async () => {
    const { desired, cwd } = await load(`${PROFILE}metadata: { name: team, description: For all }
settings: { version: 19 }
prune: [diagnostics.mutedChecks]
locked: { containerEngine: { name: true }, images: true }
portForwards: [{ namespace: default, service: web, k8sPort: http, hostPort: 8080 }]
`);
    expect(desired).toMatchObject({
      metadata: { name: 'team', description: 'For all' },
      request: { prune: ['diagnostics.mutedChecks'] },
      locked: { containerEngine: { name: true }, images: true },
      portForwards: [{ namespace: 'default', service: 'web', k8sPort: 'http', hostPort: 8080 }],
      files: [join(cwd, 'p.yaml')],
    });
  });

  test('standard input can be read only once', async () => {
    const context = {
      cwd: '/',
      env: {},
      platform: 'linux' as const,
      arch: 'x64',
      readStdin: async () => Buffer.from('{"version":19}'),
    };
    const { desired, documents } = await loadDesired(['-'], context);
    expect(desired?.files).toEqual(['-']);
    expect(documents).toEqual([{ file: '<stdin>', form: 'settings', version: 19 }]);
    await expect(loadDesired(['-', '-'], context)).rejects.toMatchObject({ code: 'ERR_USAGE' });
  });
});

describe('older versions', () => {
  test('are migrated, and only what was written appears', async () => {
    const { desired } = await load(
      'version: 4\nkubernetes: { containerEngine: moby, memoryInGB: 4 }\ntelemetry: false\n',
    );
    expect(desired?.request.settings).toMatchObject({
      version: 19,
      containerEngine: { name: 'moby' },
      virtualMachine: { memoryInGB: 4 },
      application: { telemetry: { enabled: false } },
    });
    expect(JSON.stringify(desired)).not.toContain('mobyStorageDriver');
  });

  test('an error is shown where it was written', async () => {
    const { findings } = await load('version: 4\nkubernetes:\n  memoryInGB: lots\n');
    expect(places(findings)).toEqual(['3:15 /kubernetes/memoryInGB']);
  });
});

describe('values', () => {
  test('are canonical after loading', async () => {
    const { desired } = await load(
      'version: 19\ncontainerEngine: { name: docker }\nkubernetes: { version: v1.30.2+k3s1 }\n',
    );
    expect(desired?.request.settings).toMatchObject({
      containerEngine: { name: 'moby' },
      kubernetes: { version: '1.30.2' },
    });
  });

  test('a number in place of a version quotes the text as written', async () => {
    const { findings } = await load('version: 19\nkubernetes: { version: 1.30 }\n');
    expect(findings).toMatchObject([{ line: 2, suggestion: '"1.30"' }]);
  });

  test('null removes a map entry and nothing else', async () => {
    const { desired } = await load('version: 19\ndiagnostics: { mutedChecks: { CHECK: null } }\n');
    expect(desired?.request.settings).toMatchObject({ diagnostics: { mutedChecks: { CHECK: null } } });
    expect((await load('version: 19\nimages: { showAll: null }\n')).findings).toHaveLength(1);
  });
});

describe('several documents', () => {
  test('later ones win field by field; lists are replaced, maps merged by key', async () => {
    const { desired } = await load({
      'a.yaml': `${PROFILE}settings:
  version: 19
  images: { showAll: true, namespace: a }
  containerEngine: { allowedImages: { patterns: [a, b] } }
  diagnostics: { mutedChecks: { ONE: true, TWO: true } }
state: stopped
`,
      'b.json': JSON.stringify({
        version: 19,
        images: { showAll: false },
        containerEngine: { allowedImages: { patterns: ['c'] } },
        diagnostics: { mutedChecks: { TWO: null, THREE: true } },
      }),
    });
    expect(desired?.request).toMatchObject({
      settings: {
        images: { showAll: false, namespace: 'a' },
        containerEngine: { allowedImages: { patterns: ['c'] } },
        diagnostics: { mutedChecks: { ONE: true, TWO: null, THREE: true } },
      },
      state: 'stopped',
    });
  });

  test('of different versions are merged at the newest version', async () => {
    const { desired } = await load({
      'old.yaml': 'version: 3\nupdater: false\n',
      'new.yaml': 'version: 19\nimages: { showAll: false }\n',
    });
    expect(desired?.request.settings).toMatchObject({
      version: 19,
      application: { updater: { enabled: false } },
      images: { showAll: false },
    });
  });

  test('all errors of all documents are reported', async () => {
    const { findings, desired } = await load({
      'a.yaml': 'version: 0\n',
      'b.yaml': 'version: 19\nimages: { showAl: true, namespace: 1 }\n',
    });
    expect(desired).toBeUndefined();
    expect(findings.map(({ file, line }) => `${file}:${line}`)).toEqual(['a.yaml:1', 'b.yaml:2', 'b.yaml:2']);
  });

  test('merging is associative', () => {
    const tree = fc.letrec<{ node: JsonObject }>((tie) => ({
      node: fc.dictionary(
        fc.constantFrom('a', 'b', 'c'),
        fc.oneof(
          { depthSize: 'small' },
          fc.boolean(),
          fc.constant(null),
          fc.array(fc.integer(), { maxLength: 2 }),
          tie('node'),
        ),
        { maxKeys: 3 },
      ),
    })).node;
    // Settings never have scalars and objects at one path; with them a scalar in the middle would hide what is below it.
    const sameShape = (a: JsonObject, b: JsonObject): boolean =>
      Object.keys(a).every((key) => {
        const [x, y] = [a[key], b[key]];
        if (y === undefined || x === undefined) return true;
        const [deepX, deepY] = [x, y].map(
          (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
        );
        return deepX === deepY && (!deepX || sameShape(x as JsonObject, y as JsonObject));
      });
    fc.assert(
      fc.property(tree, tree, tree, (a, b, c) => {
        fc.pre(sameShape(a, b) && sameShape(b, c) && sameShape(a, c));
        expect(mergeOver(mergeOver(a, b), c)).toEqual(mergeOver(a, mergeOver(b, c)));
      }),
      { numRuns: runs(200) },
    );
  });
});

test('the history gets the line of each change: of the last file that asks for it, its entry, or its prune', async () => {
  const { desired, cwd } = await load({
    'base.yaml': `${PROFILE}settings:
  version: 19
  images:
    namespace: base
    showAll: false
portForwards:
  - { namespace: default, service: db, k8sPort: 5432, hostPort: 5432 }
  - namespace: default
    service: web
    k8sPort: http
    hostPort: 8080
prune:
  - portForwards
  - machine.mounts
`,
    'team.yaml': `${PROFILE}state: started
settings:
  version: 19
  images: { namespace: team }
machine:
  mounts:
    /data: writable
`,
  });
  const [base, team] = [join(cwd, 'base.yaml'), join(cwd, 'team.yaml')];
  const asked = (path: string, key?: string) => ({ path, ...(key === undefined ? {} : { key }) });
  const lines: [{ path: string; key?: string }, string, number][] = [
    [asked('images.namespace'), team, 6],
    [asked('images.showAll'), base, 7],
    [asked('portForwards', 'default/web:http'), base, 10],
    [asked('portForwards', 'default/old:80'), base, 15],
    [asked('machine.mounts', '/data'), team, 9],
    [asked('state'), team, 3],
  ];
  const author = await desired?.author([...lines.map(([change]) => change), asked('kubernetes.port')]);
  expect(author?.sources).toEqual(lines.map(([change, file, line]) => ({ ...change, file, line })));
});

describe('secrets', () => {
  const at = (value: string) => `version: 19\nexperimental: { virtualMachine: { proxy: { password: ${value} } } }\n`;
  const PATH = 'experimental.virtualMachine.proxy.password';

  test('come from the environment or a file beside the document', async () => {
    const env = { PROXY: 'from env' };
    const fromEnv = await load(at('{ fromEnv: PROXY }'), { env });
    expect(fromEnv.desired).toMatchObject({ secrets: { [PATH]: { env: 'PROXY' } } });
    expect(JSON.stringify(fromEnv.desired?.request)).toContain('from env');
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'secret'), 'from file\n');
    writeFileSync(join(cwd, 'p.yaml'), at('{ fromFile: secret }'));
    const loaded = await loadDesired([join(cwd, 'p.yaml')], {
      cwd: '/',
      env: {},
      platform: 'linux',
      arch: 'x64',
      readStdin: async () => Buffer.alloc(0),
    });
    expect(JSON.stringify(loaded.desired?.request)).toContain('"from file"');
  });

  test('given literally cause a warning that does not show the value', async () => {
    const { warnings, desired } = await load(at('hunter2'), { platform: 'win32' });
    expect(desired).toBeDefined();
    expect(warnings).toEqual([expect.stringContaining(PATH)]);
    expect(warnings.join()).not.toContain('hunter2');
  });

  test.each([
    ['a variable that is not set', at('{ fromEnv: NOPE }'), '2:65'],
    ['a file that is not there', at('{ fromFile: nope }'), '2:66'],
    ['a device, which may have no end', at('{ fromFile: /dev/zero }'), '2:66'],
    ['two sources', at('{ fromEnv: A, fromFile: b }'), '2:54'],
    ['a name that is no text', at('{ fromEnv: 1 }'), '2:54'],
    ['a reference for what is no secret', 'version: 19\nimages: { namespace: { fromEnv: A } }\n', '2:22'],
  ])('rejected: %s', async (_what, text, place) => {
    const { findings, desired } = await load(text);
    expect(desired).toBeUndefined();
    expect(findings.map(({ line, column }) => `${line}:${column}`)).toEqual([place]);
  });
});

describe('around the settings', () => {
  test.each([
    [
      'a kind that is not known',
      'apiVersion: rdctl/v1\nkind: Profil\nsettings: { version: 19 }',
      '2:7 /kind',
      'Profile',
    ],
    ['an unknown key', `${PROFILE}settings: { version: 19 }\nprunes: []`, '4:1 /prunes', 'prune'],
    ['a part of a profile in settings', 'version: 19\nstate: started', '2:1 /state', undefined],
    ['no settings', PROFILE, '1:1 ', undefined],
    ['settings of the wrong kind', `${PROFILE}settings: 19`, '3:11 /settings', undefined],
    ['a wrong state', `${PROFILE}settings: { version: 19 }\nstate: running`, '4:8 /state', undefined],
    [
      'prune of what is no map',
      `${PROFILE}settings: { version: 19 }\nprune: [images.showAll]`,
      '4:9 /prune/0',
      undefined,
    ],
    ['prune that is no list', `${PROFILE}settings: { version: 19 }\nprune: WSL.integrations`, '4:8 /prune', undefined],
    [
      'a lock on nothing',
      `${PROFILE}settings: { version: 19 }\nlocked: { image: true }`,
      '4:11 /locked/image',
      'images',
    ],
    [
      'a lock that is no boolean',
      `${PROFILE}settings: { version: 19 }\nlocked: { images: { showAll: 1 } }`,
      '4:30 /locked/images/showAll',
      undefined,
    ],
    [
      'a lock on the version',
      `${PROFILE}settings: { version: 19 }\nlocked: { version: true }`,
      '4:20 /locked/version',
      undefined,
    ],
    [
      'a port out of range',
      `${PROFILE}settings: { version: 19 }\nportForwards: [{ namespace: d, service: s, k8sPort: 1, hostPort: 65536 }]`,
      '4:66 /portForwards/0/hostPort',
      undefined,
    ],
    [
      'metadata of the wrong kind',
      `${PROFILE}settings: { version: 19 }\nmetadata: { name: 1 }`,
      '4:19 /metadata/name',
      undefined,
    ],
  ])('%s', async (_what, text, place, suggestion) => {
    const { findings } = await load(text);
    expect(places(findings)).toEqual([place]);
    expect(findings[0]?.suggestion).toBe(suggestion);
  });

  test('a lock on a map entry is rejected, because a map is locked as a whole', async () => {
    const { findings } = await load(
      `${PROFILE}settings: { version: 19 }\nlocked: { WSL: { integrations: { a: true } } }`,
    );
    expect(findings).toMatchObject([
      {
        pointer: '/locked/WSL/integrations',
        message: 'WSL.integrations can be locked only as a whole, not by entry',
        expected: 'true or false',
      },
    ]);
  });
});
