import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readDeploymentInput, settingsInForce } from '../../profiles/document/deployment-input.ts';
import type { Source } from '../../profiles/document/source.ts';
import { RdError } from '../../src/errors.ts';
import type { Platform } from '../../src/settings/field.ts';
import { runs } from '../helpers/rounds.ts';

function source(text: string | Uint8Array): Source {
  const bytes = Buffer.from(text);
  return { name: 'p.yaml', label: 'p.yaml', bytes, size: bytes.length };
}

const read = (text: string | Uint8Array, platform: Platform = 'linux') => readDeploymentInput(source(text), platform);

async function refused(text: string | Uint8Array): Promise<string[]> {
  const error = await read(text).catch((cause: unknown) => cause);
  if (!(error instanceof RdError)) throw new Error('it was accepted');
  expect(error.code).toBe('ERR_PROFILE_INVALID');
  return [error.message, ...error.details];
}

async function written(text: string) {
  const { settings, warnings } = await read(text);
  return { settings: Object.fromEntries(settings.map((each) => [each.written, each.value])), warnings };
}

const profile = (settings: object, more: object = {}) =>
  JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', settings, ...more });

describe('invalid documents', () => {
  test.each<[string, string | Uint8Array, string]>([
    ['cut off', '{"password":"hush"', 'error in json: p.yaml:1:19: an object is not closed: a "}" is missing here'],
    [
      'YAML with a mistake',
      'a: 1\nb: "hush',
      'error in json: p.yaml:2:9: as YAML, a string is not closed: a quotation',
    ],
    ['a list', '[]', 'error in json: p.yaml: the settings must be an object'],
    ['a word', 'hush', 'error in json: p.yaml: the settings must be an object'],
    ['nothing', ' \n', 'error in json: p.yaml:1:1: the document is empty'],
    ['bytes', Uint8Array.of(0x7b, 0xff, 0xfe), 'error in json: p.yaml:1:2: the document is not UTF-8'],
    [
      'UTF-16',
      Buffer.from('\ufeff{}', 'utf16le'),
      'error in json: p.yaml:1:1: the document is UTF-16; save it as UTF-8',
    ],
    ['NUL', '{\0}', 'error in json: p.yaml:1:2: the document contains the control character U+0000'],
    ['deep', '['.repeat(200), 'error in json: p.yaml:1:101: the document is nested too deeply'],
    [
      'repeated',
      '{"images":{"showAll":true,\n"showAll":false}}',
      'error in json: p.yaml:2:1: the key "showAll" appears twice',
    ],
    ['a prototype', '{"__proto__":{}}', 'error in json: p.yaml:1:2: the key "__proto__" is not allowed'],
    [
      'an alias of itself',
      'a: &a { b: *a }',
      'error in json: p.yaml:1:12: as YAML, unknown alias; "*" starts an alias',
    ],
    ['two documents', 'a: 1\n---\nb: 1\n', 'error in json: p.yaml:2:1: as YAML, a second document starts here'],
  ])('%s', async (_, text, message) => {
    const [said = ''] = await refused(text);
    expect(said.startsWith(message), said).toBe(true);
    expect(said).not.toContain('hush');
  });

  test('more than a mebibyte, of which only the beginning was read', async () => {
    const bytes = Buffer.alloc(1024 * 1024 + 1, 32);
    const error = await readDeploymentInput({ name: 'x', label: 'x', bytes, size: 3 * 1024 * 1024 }, 'linux').catch(
      (cause: unknown) => cause,
    );
    expect(String(error)).toContain('error in json: x: the document has 3.0 MiB; at most 1 MiB is read');
  });

  test('aliases that expand exponentially', async () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let at = 1; at < 8; at++)
      lines.push(
        `a${at}: &a${at} [${Array(10)
          .fill(`*a${at - 1}`)
          .join(', ')}]`,
      );
    expect((await refused(lines.join('\n')))[0]).toContain('the aliases expand to more than 100000 characters');
  });
});

describe('bare settings', () => {
  test('YAML and JSON alike, without a version as the newest version', async () => {
    const expected = { settings: { 'kubernetes.enabled': false }, warnings: [] };
    expect(await written('kubernetes: { enabled: false }')).toEqual(expected);
    expect(await written('\ufeff{"version":19,"kubernetes":{"enabled":false}}')).toEqual(expected);
    expect((await read('{}')).version).toBe(19);
  });

  test('reject unknown names, nulls and empty sections', async () => {
    const text = `{"Kubernetes":{"enabled":true},"images":{"showAll":null,"shoAll":true,"b":{"c":1}},
      "containers":null,"WSL":{},"\\u001b[31m":1,"showMuted":1}`;
    expect(await written(text)).toEqual({
      settings: {},
      warnings: [
        'images.showAll is null and was left out.',
        'containers is null and was left out.',
        'Kubernetes is not a setting and was left out. Did you mean kubernetes?',
        'images.shoAll is not a setting and was left out. Did you mean images.showAll?',
        'images.b is not a setting and was left out.',
        '["\\u001b[31m"] is not a setting and was left out.',
        'showMuted is not a setting and was left out. Did you mean diagnostics.showMuted?',
      ],
    });
  });

  test('suggest the intended name for a dotted path', async () => {
    const text = '{"kubernetes.port":1,"kubernetes":{"options.traefik":true},"kubernetes.options":{},"a.b":1}';
    expect(await written(text)).toEqual({
      settings: {},
      warnings: [
        '["kubernetes.port"] is not a setting and was left out: settings are nested; dots do not select a section.',
        'kubernetes["options.traefik"] is not a setting and was left out: settings are nested; dots do not select a section.',
        '["kubernetes.options"] is not a setting and was left out: settings are nested; dots do not select a section.',
        'a.b is not a setting and was left out.',
      ],
    });
  });

  test.each<[string, string, string]>([
    [
      'a type',
      '{"kubernetes":{"enabled":1}}',
      'p.yaml:1:26: "kubernetes.enabled" cannot be 1 (/kubernetes/enabled); expected true or false',
    ],
    [
      'a section',
      '{"kubernetes":[]}',
      'p.yaml:1:15: "kubernetes" is a section, not a value (/kubernetes); expected an object with settings',
    ],
    [
      'a range',
      'kubernetes:\n  port: 70000',
      'p.yaml:2:9: "kubernetes.port" cannot be 70000 (/kubernetes/port); expected an integer from 1 to 65535',
    ],
    [
      'a closed list',
      'containerEngine: { name: mobi }',
      'p.yaml:1:26: "containerEngine.name" cannot be mobi (/containerEngine/name); expected one of "containerd", "moby"; did you mean moby?',
    ],
    ['a fraction', 'virtualMachine: { memoryInGB: 1.7 }', '"virtualMachine.memoryInGB" cannot be 1.7'],
    [
      'too many digits',
      'virtualMachine: { memoryInGB: 123456789012345678 }',
      '"virtualMachine.memoryInGB" cannot be 123456789012345678',
    ],
    [
      'a list of numbers',
      '{"containerEngine":{"allowedImages":{"patterns":[1]}}}',
      '(/containerEngine/allowedImages/patterns); expected a list of strings',
    ],
    ['a number in a map', '{"WSL":{"integrations":{"d":1}}}', '(/WSL/integrations/d); expected true or false'],
    [
      'a text in a map of switches',
      '{"WSL":{"integrations":{"d":"x"}}}',
      '(/WSL/integrations/d); expected true or false',
    ],
    ['an object in a map', '{"WSL":{"integrations":{"d":{}}}}', '(/WSL/integrations/d); expected true or false'],
    [
      'null in a map',
      '{"WSL":{"integrations":{"d":null}}}',
      'WSL.integrations.d cannot be null (/WSL/integrations/d); expected true or false',
    ],
    [
      'a number in a map of texts',
      '{"application":{"extensions":{"installed":{"x":1}}}}',
      '(/application/extensions/installed/x)',
    ],
    [
      'null in a map of texts',
      '{"application":{"extensions":{"installed":{"x":null}}}}',
      'application.extensions.installed.x cannot be null (/application/extensions/installed/x); expected a string',
    ],
    ['a map', '{"WSL":{"integrations":[]}}', '(/WSL/integrations); expected a map of names to true or false'],
    [
      'no version',
      '{"version":null}',
      'p.yaml:1:12: null is not a settings version (/version); expected an integer from 1 to 19',
    ],
    ['a later version', '{"version":20}', '20 is newer than 19, the newest settings version this release knows'],
    ['a version of letters', '{"version":"x"}', '"x" is not a settings version'],
    ['a number of seconds', 'diagnostics: { connectivity: { interval: -1 } }', '(/diagnostics/connectivity/interval)'],
  ])('a wrong value is refused: %s', async (_, text, finding) => {
    const [message, ...details] = await refused(text);
    expect(message).toBe('1 error in p.yaml; no profile was written.');
    expect(details).toEqual([expect.stringContaining(finding)]);
  });

  test('all errors are reported, in the order of the text', async () => {
    const [message, ...details] = await refused('kubernetes:\n  enabled: maybe\n  port: 0\nversion: 19\nimages: 1\n');
    expect(message).toBe('3 errors in p.yaml; no profile was written.');
    expect(details.map((line) => line.slice(0, 9))).toEqual(['p.yaml:2:', 'p.yaml:3:', 'p.yaml:5:']);
  });

  test('no message contains a secret', async () => {
    const proxy = (password: unknown) => JSON.stringify({ experimental: { virtualMachine: { proxy: { password } } } });
    for (const wrong of [4711, ['4711'], { fromEnv: 4711 }, { fromEnv: 'A', fromFile: '4711' }, true]) {
      const said = (await refused(proxy(wrong))).join('\n');
      expect(said).toContain('experimental.virtualMachine.proxy.password');
      expect(said).not.toContain('4711');
    }
    expect(await written('{"password":"4711"}')).toEqual({
      settings: {},
      warnings: [
        'password is not a setting and was left out. Did you mean experimental.virtualMachine.proxy.password?',
      ],
    });
  });
});

test('texts and names arrive as in JSON', async () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string());
  // Three names are refused everywhere, and control characters must be escaped, except DEL, which JSON allows.
  const name = text.filter((each) => !['__proto__', 'constructor', 'prototype'].includes(each));
  const escaped = (value: unknown) => JSON.stringify(value).replaceAll('\x7f', '\\u007f');
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(name, fc.boolean()),
      fc.uniqueArray(text, { selector: (each) => each.trim() }),
      async (integrations, patterns) => {
        const settings = { WSL: { integrations }, containerEngine: { allowedImages: { patterns } } };
        const read = await written(escaped(settings));
        expect(read.settings['WSL.integrations']).toEqual(JSON.parse(JSON.stringify(integrations)));
        expect(read.settings['containerEngine.allowedImages.patterns']).toEqual(patterns);
      },
    ),
    { numRuns: runs(200) },
  );
});

describe('older versions', () => {
  test('use the names of their time', async () => {
    const { version, settings, warnings } = await read(
      '{"version":4,"kubernetes":{"suppressSudo":true,"containerEngine":"moby"},"window":{"quitOnClose":true}}',
    );
    expect({ version, warnings }).toEqual({ version: 4, warnings: [] });
    expect(new Set(settings)).toEqual(
      new Set([
        {
          written: 'kubernetes.containerEngine',
          value: 'moby',
          today: { path: 'containerEngine.name', value: 'moby' },
        },
        { written: 'kubernetes.suppressSudo', value: true, today: { path: 'application.adminAccess', value: false } },
        { written: 'window.quitOnClose', value: true, today: { path: 'application.window.quitOnClose', value: true } },
      ]),
    );
  });

  test('a removed setting has no counterpart', async () => {
    const { settings } = await read('{"version":10,"virtualMachine":{"hostResolver":true}}');
    expect(settings).toEqual([{ written: 'virtualMachine.hostResolver', value: true }]);
  });

  test('a later setting is written, and reported', async () => {
    const text = '{"version":10,"containerEngine":{"mobyStorageDriver":"auto"}}';
    expect(await written(text)).toEqual({
      settings: { 'containerEngine.mobyStorageDriver': 'auto' },
      warnings: [
        '"containerEngine.mobyStorageDriver" needs settings version 17; the document says 10; it is used anyway.',
      ],
    });
    expect(await refused(profile(JSON.parse(text)))).toContainEqual(
      expect.stringContaining('needs settings version 17'),
    );
  });

  test('a later setting is checked as it is today', async () => {
    const [, ...details] = await refused(
      '{"version":1,"experimental":{"virtualMachine":{"diskSize":{"a":1}}},"images":{"showAll":2}}',
    );
    expect(details).toEqual([
      expect.stringContaining('(/experimental/virtualMachine/diskSize); expected a size such as "100GiB"'),
      expect.stringContaining('(/images/showAll); expected true or false'),
    ]);
    expect((await written('{"version":1,"application":{"debgu":true}}')).warnings).toContain(
      'application.debgu is not a setting and was left out.',
    );
  });

  test('a wrong value is reported under the name that is written', async () => {
    expect((await refused('{"version":4,"kubernetes":{"containerEngine":"mobi"}}'))[1]).toContain(
      '"kubernetes.containerEngine" cannot be "mobi" (/kubernetes/containerEngine)',
    );
  });
});

describe('a desired-state profile', () => {
  test('is checked strictly', async () => {
    expect(await refused(profile({ version: 19, Kubernetes: {} }))).toContainEqual(
      expect.stringContaining('unknown setting "Kubernetes" (/settings/Kubernetes); did you mean kubernetes?'),
    );
    expect(await refused(profile({ version: 19, kubernetes: null }))).toHaveLength(2);
    expect(await refused(profile({ kubernetes: {} }))).toContainEqual(expect.stringContaining('version is missing'));
    expect(await refused(profile({ version: 19 }, { lockd: {} }))).toContainEqual(expect.stringContaining('lockd'));
    expect(await refused(profile({ version: 19 }, { locked: { version: true } }))).toContainEqual(
      expect.stringContaining('version cannot be locked'),
    );
  });

  test('an entry to remove cannot be in a deployment profile', async () => {
    const text = profile({ version: 19, diagnostics: { mutedChecks: { A: true, B: null } } });
    expect(await written(text)).toEqual({
      settings: { 'diagnostics.mutedChecks': { A: true } },
      warnings: ['diagnostics.mutedChecks.B is null and was left out: a deployment profile cannot remove an entry.'],
    });
  });

  test('fields that only rdctl reads are in no deployment profile', async () => {
    const portForwards = [{ namespace: 'default', service: 'web', k8sPort: 80, hostPort: 8080 }];
    const { warnings, notes } = await read(profile({ version: 19 }, { portForwards, state: 'stopped' }));
    expect({ warnings, notes }).toEqual({
      warnings: [],
      notes: [
        'state and portForwards: used by rdctl only, and not part of deployment profiles.',
        'the profile has no locked map, so each part contains all settings.',
      ],
    });
    expect((await read(profile({ version: 19 }, { prune: [], locked: {} }))).notes).toEqual([
      'prune: used by rdctl only, and not part of deployment profiles.',
    ]);
    expect((await read('{"images":{"showAll":true}}')).notes).toEqual([]);
  });

  test('errors around the settings, in them and in the locks are all reported, in the order of the text', async () => {
    const text = [
      'apiVersion: rdctl/v1',
      'kind: Profile',
      'locked: { image: true, kubernetes: { port: true } }',
      'settings: { version: 19, kubernetes: { enabled: 1 }, WSL: true }',
      'stat: started',
    ].join('\n');
    const [message, ...details] = await refused(text);
    expect(message).toBe('5 errors in p.yaml; no profile was written.');
    expect(details.map((line) => /^p.yaml:(\d+)/.exec(line)?.[1])).toEqual(['3', '3', '4', '4', '5']);
    const checked = readDeploymentInput(source(text), 'linux', { consequence: '' });
    await expect(checked).rejects.toThrow('5 errors in p.yaml.');
  });

  test('a lock with an old name is reported with the current name', async () => {
    const settings = { version: 14, experimental: { virtualMachine: { type: 'vz' } } };
    const locked = { experimental: { virtualMachine: { type: true, mount: { type: true } } } };
    const [, ...details] = await refused(profile(settings, { locked }));
    expect(details).toEqual([
      expect.stringContaining(
        'locked must use current setting names: experimental.virtualMachine.type is now virtualMachine.type',
      ),
      expect.stringContaining('experimental.virtualMachine.mount.type is now virtualMachine.mount.type'),
    ]);
  });

  test('a lock must have a value', async () => {
    const locked = {
      kubernetes: { version: true, port: false },
      images: true,
      WSL: true,
      application: { debug: false },
    };
    const settings = { version: 19, kubernetes: { port: 6443 }, images: { showAll: true } };
    const [message, ...details] = await refused(profile(settings, { locked }));
    expect(message).toBe('2 errors in p.yaml; no profile was written.');
    expect(details).toEqual([
      expect.stringMatching(/^p\.yaml:1:\d+: kubernetes\.version is locked but has no value in the settings/),
      expect.stringContaining('WSL is locked'),
    ]);
  });

  test('a lock on a secret reference has one', async () => {
    const proxy = { password: { fromEnv: 'PROXY_PASSWORD' } };
    const locked = { experimental: { virtualMachine: { proxy: { password: true } } } };
    const text = profile({ version: 19, experimental: { virtualMachine: { proxy } } }, { locked });
    expect((await read(text)).locked).toEqual(locked);
  });
});

describe('settings in force', () => {
  test('of a newer version, by current names', async () => {
    const { version, settings, warnings } = await settingsInForce(
      { version: 21, images: { showAll: true, brandNew: 1 } },
      'linux',
    );
    expect(version).toBe(21);
    expect(settings.map((each) => each.written)).toEqual(['images.showAll']);
    expect(warnings).toEqual([
      'the settings have version 21; rdctl supports up to version 19, so newer settings were left out.',
      'images.brandNew is not a setting and was left out.',
    ]);
  });

  test('of an unknown application', async () => {
    await expect(settingsInForce({ version: 19, images: 1 }, 'linux')).rejects.toMatchObject({
      message: '1 error in the settings in force; no profile was written.',
      details: [
        'the settings in force: "images" is a section, not a value (/images); expected an object with settings',
      ],
    });
    await expect(settingsInForce({ version: 0.5 }, 'linux')).rejects.toThrow('1 error in the settings in force');
  });
});
