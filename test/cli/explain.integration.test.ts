import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { commandHelp } from '../../cli/views/help-text.ts';
import { policyPrograms } from '../../profiles/policies/places.ts';
import type { PolicySources } from '../../profiles/policies/read.ts';
import type { JsonObject } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';
import { MANAGED_FIELDS } from '../../src/settings/fields.ts';
import { places } from '../../src/state/places.ts';
import { checkEach } from '../helpers/check-each.ts';
import { rdctl } from '../helpers/cli.ts';
import { scriptedServer } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

interface Profiles {
  defaults?: JsonObject;
  locked?: JsonObject;
}

/** A location of profiles, for a command and for a service. */
function profiles({ defaults, locked }: Profiles = {}) {
  const directory = temporaryDirectory();
  const files = { defaults: join(directory, 'defaults.json'), locked: join(directory, 'locked.json') };
  if (defaults) writeFileSync(files.defaults, JSON.stringify({ version: 19, ...defaults }));
  if (locked) writeFileSync(files.locked, JSON.stringify({ version: 19, ...locked }));
  const sources: PolicySources = { places: [{ format: 'json', ...files }], programs: policyPrograms() };
  return { files, sources };
}

/** The tool on an empty home without a service. */
function offline(given: Profiles = {}, platform: Platform = 'linux') {
  const home = temporaryDirectory();
  const env = { RDCTL_HOME: home };
  const { files, sources } = profiles(given);
  const where = places(env, 'linux', '');
  return {
    files,
    where,
    store(settings: JsonObject) {
      mkdirSync(dirname(where.settingsFile), { recursive: true });
      writeFileSync(where.settingsFile, JSON.stringify({ version: 19, ...settings }));
    },
    explain: (...argv: string[]) => rdctl(['explain', ...argv], { env, policies: sources, platform }),
    async json(...argv: string[]) {
      const { out } = await rdctl(['explain', ...argv, '-o', 'json'], { env, policies: sources, platform });
      return JSON.parse(out);
    },
  };
}

const layer = (explanation: { layers: { layer: string }[] }, name: string) =>
  explanation.layers.find((each) => each.layer === name);

describe('with nothing running', () => {
  test('a setting is found by its flag, with or without hyphens', async () => {
    const { explain } = offline();
    const { out } = await explain('images.namespace');
    for (const argv of [['--images.namespace'], ['images.namespace'], ['--', '--images.namespace']])
      expect(await explain(...argv)).toMatchObject({ exit: 0, out });
    expect((await explain('--kubernetes-enabled')).out).toBe((await explain('kubernetes.enabled')).out);
    expect((await explain('--images.namespace', '--kubernetes.port')).exit).toBe(1);
    expect((await explain('--imagez.namespace')).err).toContain('unknown flag: --imagez.namespace');
  });

  test('shows a default with its reason', async () => {
    const { explain, json, where } = offline();
    expect((await explain('images.namespace')).out).toBe(
      [
        'No service is running: this is what the next start uses.',
        '',
        'images.namespace = default  (built-in default)',
        '',
        'Namespace shown in the list of images (containerd only).',
        '',
        '→ built-in default  default  schema',
        `  stored            -        ${where.settingsFile} (nothing is stored before the first run)`,
        '',
        'Takes     a string',
        'A change  is only stored, because nothing running uses it',
        'Flag      --images.namespace',
        'Docs      docs/settings.md#imagesnamespace',
        '',
      ].join('\n'),
    );
    expect(layer(await json('virtualMachine.memoryInGB'), 'built-in default')).toMatchObject({
      note: 'a quarter of system memory, from 1 to 6 GiB, on first run',
    });
  });

  test('shows a platform reason', async () => {
    const windows = offline({}, 'win32');
    expect(layer(await windows.json('application.pathManagementStrategy'), 'built-in default')).toMatchObject({
      value: 'manual',
      note: 'the default on Windows',
    });
    const mac = offline({}, 'darwin');
    const vm = layer(await mac.json('virtualMachine.type'), 'built-in default');
    expect(vm).toMatchObject({ note: expect.stringMatching(/^the default on macOS (?:with|before) kernel 23/) });
  });

  test('a defaults profile wins before the first run, but not after it', async () => {
    const { json, store, files } = offline({ defaults: { images: { namespace: 'team' } } });
    expect(await json('images.namespace')).toMatchObject({
      basis: 'files',
      value: 'team',
      from: 'defaults profile',
      locked: false,
      layers: [
        { layer: 'built-in default', value: 'default', source: 'schema', wins: false },
        {
          layer: 'defaults profile',
          value: 'team',
          source: files.defaults,
          wins: true,
          note: 'applies at the first start',
        },
        { layer: 'stored', wins: false },
      ],
    });
    store({ images: { namespace: 'mine' } });
    const after = await json('images.namespace');
    expect(after).toMatchObject({ value: 'mine', from: 'stored' });
    expect(layer(after, 'defaults profile')).toMatchObject({
      wins: false,
      note: 'applies only on first run; the origin of these settings is not recorded',
    });
  });

  test('a locked profile wins over everything', async () => {
    const { json, store, explain, files } = offline({
      defaults: { images: { namespace: 'team' } },
      locked: { images: { namespace: 'held' } },
    });
    store({ images: { namespace: 'mine' } });
    const explained = await json('images.namespace');
    expect(explained).toMatchObject({ value: 'held', from: 'locked profile', locked: true });
    expect(explained.layers.filter(({ wins }: { wins: boolean }) => wins)).toEqual([
      { layer: 'locked profile', value: 'held', source: files.locked, wins: true },
    ]);
    expect(layer(explained, 'stored')).toMatchObject({ value: 'mine' });
    const { out } = await explain('images.namespace');
    expect(out).toContain(`images.namespace = held  (locked by ${files.locked})`);
    expect(out).toContain('It cannot be changed here; ask your administrator.');
  });

  test('an unusable profile is reported', async () => {
    const { explain, files } = offline({ locked: { kubernetes: { port: 'x' } } });
    const { exit, err } = await explain('images.namespace');
    expect(exit).toBe(3);
    expect(err).toContain(`Error in deployment file ${files.locked}:`);
    expect(err).toContain(`Error for field 'kubernetes.port': expecting value of type number, got a string "x"`);
  });
});

describe('with a running service', () => {
  async function stage(given: Profiles, settings?: JsonObject) {
    const { files, sources } = profiles(given);
    const running = await startService({ policies: files, ...(settings ? { settings } : {}) });
    await running.converged();
    const tool = (...argv: string[]) => rdctl(['explain', ...argv], { env: running.env, policies: sources });
    return { ...running, files, tool, json: async (path: string) => JSON.parse((await tool(path, '-o', 'json')).out) };
  }

  test('shows the defaults profile that was used at first run, and what the driver does', async () => {
    const { json, files, here } = await stage({ defaults: { images: { namespace: 'team' } } });
    expect(await json('images.namespace')).toMatchObject({
      basis: 'service',
      value: 'team',
      from: 'stored',
      layers: [
        { layer: 'built-in default', value: 'default' },
        {
          layer: 'defaults profile',
          value: 'team',
          source: files.defaults,
          note: expect.stringMatching(/^applied at the first run, \d{4}-\d\d-\d\dT/),
        },
        { layer: 'stored', value: 'team', source: here.settingsFile, wins: true },
      ],
      driver: { name: 'simulated', level: 'stored' },
      effect: 'none',
    });
    expect(await json('containerEngine.name')).toMatchObject({
      driver: { name: 'simulated', level: 'enforced' },
      effect: 'restart',
      allowed: ['containerd', 'moby'],
      synonyms: { docker: 'moby' },
      flag: '--container-engine.name',
    });
  });

  test('shows a defaults profile that came too late', async () => {
    const first = await startService({ power: 'stopped' });
    await first.service.stop('enough');
    const { files, sources } = profiles({ defaults: { images: { namespace: 'team' } } });
    const { env } = await startService({ home: first.home, power: 'stopped', policies: files });
    const { out } = await rdctl(['explain', 'images.namespace', '-o', 'json'], { env, policies: sources });
    expect(layer(JSON.parse(out), 'defaults profile')).toMatchObject({
      wins: false,
      note: expect.stringMatching(/^not applied: the settings were created .* without a defaults profile$/),
    });
  });

  test('shows that a map is locked as a whole', async () => {
    const { json } = await stage({ locked: { diagnostics: { mutedChecks: { A: true } } } });
    expect(await json('diagnostics.mutedChecks')).toMatchObject({ locked: true, value: { A: true } });
  });

  test('shows a version that the service chose', async () => {
    const { tool } = await stage({});
    expect((await tool('kubernetes.version')).out).toMatch(
      /^kubernetes\.version = "" .*\nThe service chose \d+\.\d+\.\d+\.\n/,
    );
  });

  test('no layer shows a secret', async () => {
    const { files } = profiles({ locked: { application: { debug: false } } });
    const { client, env } = await startService({ power: 'stopped', policies: files });
    const { body, status } = await client.request({ method: 'GET', path: '/v2/settings/layers' });
    expect(status).toBe(200);
    const { builtIn, inForce, stored } = JSON.parse(body.toString());
    for (const settings of [builtIn, inForce, stored]) {
      expect(settings.experimental.virtualMachine.proxy.password).toBe('');
    }
    const { exit } = await rdctl(['explain', 'experimental.virtualMachine.proxy.password'], { env });
    expect(exit).toBe(0);
  });
});

describe('with another application', () => {
  /** A program that shares `/v1` and nothing else. */
  async function application(settings: JsonObject, locked: JsonObject = {}) {
    const answers: Record<string, unknown> = {
      'GET /v1/settings': settings,
      'GET /v1/settings/locked': locked,
      'GET /v1/backend_state': { vmState: 'STARTED', locked: false },
      'PUT /v1/propose_settings': {},
    };
    const server = await scriptedServer(({ method, path }) => {
      const answer = answers[`${method} ${path}`];
      if (answer === undefined) return { status: 404, body: `Unknown command: ${method} ${path}` };
      return { body: JSON.stringify(answer) };
    });
    onTestFinished(() => server[Symbol.asyncDispose]());
    return server;
  }

  const newest = defaultSettings({ platform: 'linux', arch: 'x64' });
  const { mount } = newest.experimental.virtualMachine;
  const oldest = {
    version: 10,
    containerEngine: { name: 'moby', allowedImages: { enabled: false, patterns: [] } },
    images: { showAll: true, namespace: 'k8s.io' },
    kubernetes: { enabled: true, version: '1.30.2' },
    experimental: { virtualMachine: { mount: { ...mount, type: '9p' } } },
  };

  test.each([
    [
      '10, at the place that it has today',
      oldest,
      { experimental: { virtualMachine: { mount: { type: true } } } },
      'virtualMachine.mount.type',
      '9p',
    ],
    ['19', newest, { version: true, images: { namespace: true } }, 'images.namespace', 'default'],
    ['25', { ...newest, version: 25, novelty: 1 }, { images: { namespace: true } }, 'images.namespace', 'default'],
  ] as const)('of settings version %s', async (_version, settings, locked, path, value) => {
    const { sources } = profiles();
    const { env, received } = await application(structuredClone(settings), locked);
    const json = async (name: string) =>
      JSON.parse((await rdctl(['explain', name, '-o', 'json'], { env, policies: sources })).out);
    expect(await json(path)).toMatchObject({
      basis: 'application',
      value,
      locked: true,
      from: 'locked profile',
      layers: [
        { layer: 'built-in default' },
        { layer: 'stored', source: 'the application' },
        { layer: 'locked profile', source: 'a deployment profile read by the application' },
      ],
    });
    expect(await json('containerEngine.name')).toMatchObject({ locked: false, from: 'stored' });
    expect(received.filter(({ method, path: to }) => method !== 'GET' && to !== '/v1/propose_settings')).toEqual([]);
  });

  test('reports a setting that it does not have', async () => {
    const { sources } = profiles();
    const { env } = await application(oldest);
    const { out } = await rdctl(['explain', 'application.theme'], { env, policies: sources });
    expect(out).toContain('Reported by another application; may be incomplete.');
    expect(out).toContain('application.theme = (nothing)');
    expect(out).toContain('the application (it does not have this setting)');
  });

  test('names the profile of this computer as the origin', async () => {
    const { files, sources } = profiles({ locked: { images: { namespace: 'held' } } });
    const { env } = await application(newest, { version: true, images: { namespace: true } });
    const { out } = await rdctl(['explain', 'images.namespace'], { env, policies: sources });
    expect(out).toContain(`(locked by ${files.locked})`);
  });
});

test('masks a secret in every format', async () => {
  const { explain, store } = offline();
  store({ experimental: { virtualMachine: { proxy: { password: 'hunter2' } } } });
  const path = 'experimental.virtualMachine.proxy.password';
  for (const argv of [[path], [path, '-o', 'json'], ['experimental'], [], ['-o', 'json']]) {
    const { out, err, exit } = await explain(...argv);
    expect({ exit, err }).toEqual({ exit: 0, err: '' });
    expect(out).not.toContain('hunter2');
    expect(out).toMatch(/\(sensitive\)|"sensitive": true/);
  }
});

describe('names', () => {
  test('a section lists its settings; no name lists all', async () => {
    const { explain, json } = offline({ locked: { images: { namespace: 'held' } } });
    const { out } = await explain('images');
    expect(out).toContain(
      'images: 2 settings\n\n  images.showAll    true  default\n  images.namespace  held  locked\n',
    );
    const all = await json();
    expect(all).toMatchObject({ kind: 'SectionExplanation', path: '' });
    expect(all.settings.map(({ path }: { path: string }) => path)).toEqual(
      MANAGED_FIELDS.map(({ path }) => path).filter((path) => path !== 'version'),
    );
  });

  test('every setting can be explained', async () => {
    const { explain } = offline();
    const settings = MANAGED_FIELDS.map(({ path }) => [path, path] as const);
    await checkEach(settings, async (path) => {
      const { exit, out } = await explain(path);
      expect(exit).toBe(0);
      expect(out).toContain(`${path} = `);
      expect(out.split('\n').filter((line) => line.startsWith('→'))).toHaveLength(1);
    });
  });

  test.each([
    ['its flag', 'container-engine.name'],
    ['its flag with dashes', 'CONTAINER-ENGINE.name'],
    ['an alias', 'container-engine'],
    ['other letter case', 'CONTAINERENGINE.NAME'],
  ])('%s is an alias', async (_name, name) => {
    expect((await offline().json(name)).path).toBe('containerEngine.name');
  });

  test.each([
    ['kubernetes.prot', 'no such setting: "kubernetes.prot"\nDid you mean kubernetes.port?'],
    ['memoryInGB', 'no such setting: "memoryInGB"\nDid you mean virtualMachine.memoryInGB?'],
    ['kuberntes', 'no such setting: "kuberntes"\nDid you mean kubernetes?'],
    [
      'kubernetes.memoryInGB',
      '"kubernetes.memoryInGB" is now called virtualMachine.memoryInGB (since settings version 5)\n',
    ],
    ['WSL.integrations.Ubuntu', '"WSL.integrations.Ubuntu" is an entry of the map WSL.integrations\n'],
    ['zzzzzzzzzzzz', 'no such setting: "zzzzzzzzzzzz"\nList all of them with: rdctl explain'],
    ['__proto__', 'no such setting: "__proto__"'],
  ])('%s', async (name, text) => {
    const { exit, out, err } = await offline().explain(name);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain(`Error: ${text}`);
  });

  test('refuses a second name', async () => {
    expect(await offline().explain('images', 'containers')).toMatchObject({ exit: 1, out: '' });
  });
});

test('the help of explain', async () => {
  const entry = COMMANDS.find(({ name }) => name === 'explain');
  if (!entry) throw new Error('no such command');
  await expect(commandHelp(await entry.load(), 'linux')).toMatchFileSnapshot('../golden/help/explain.txt');
});
