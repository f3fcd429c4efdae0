import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { upgradeDocument } from '../../profiles/document/upgrade/upgrade.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { migrate } from '../../src/settings/migrate.ts';
import { parseDocument } from '../../src/settings/parse.ts';

const HOST = { platform: 'linux', arch: 'x64' } as const;
const FOLDER = 'test/golden/upgrade';
const EXAMPLES = readdirSync(FOLDER).filter((name) => name.includes('.before.'));

const upgrade = (text: string | Uint8Array, label = 'p.yaml') => upgradeDocument(Buffer.from(text), label, HOST);

async function refusal(text: string): Promise<RdError> {
  const error = await upgrade(text).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof RdError)) throw new Error('it was not refused');
  return error;
}

describe('older files', () => {
  test.each(EXAMPLES)('%s', async (name) => {
    const { after } = await upgrade(readFileSync(`${FOLDER}/${name}`), name);
    await expect(after).toMatchFileSnapshot(`../golden/upgrade/${name.replace('.before.', '.after.')}`);
  });
});

test('a file of the newest version stays unchanged', async () => {
  const text = '# ours\nversion: 19 # now\nimages: {showAll: true}';
  expect(await upgrade(text)).toMatchObject({ from: 19, changes: [], after: text });
});

test('every change has its positions, values and a reason', async () => {
  const { changes, from, to } = await upgrade('version: 4\nkubernetes:\n  suppressSudo: true\n  hostResolver: false\n');
  expect({ from, to }).toEqual({ from: 4, to: 19 });
  expect(changes).toEqual([
    { from: 'version', to: 'version', before: 4, after: 19, reason: 'version 4 is upgraded to the newest' },
    {
      from: 'kubernetes.suppressSudo',
      to: 'application.adminAccess',
      before: true,
      after: false,
      reason: 'moved in settings version 5; its meaning was inverted then',
    },
    { from: 'kubernetes.hostResolver', before: false, reason: 'has not existed since settings version 14' },
  ]);
});

describe('what prevents an in-place edit', () => {
  const settings = async (text: string) => {
    const { after, changes } = await upgrade(text);
    return { after, changes, value: parseDocument(after, 'p.yaml').value };
  };

  test.each([
    [
      'an anchor that moves behind its alias',
      'kubernetes:\n  memoryInGB: &m 4\n  port: 6443\nversion: 4\nimages: {showAll: true}\n',
    ],
    [
      'an alias for a value that is turned round',
      'version: 4\ntelemetry: &yes true\nkubernetes: {suppressSudo: *yes}\n',
    ],
    [
      'an alias for a section',
      'version: 14\nexperimental:\n  virtualMachine: &vm\n    type: qemu\n    mount: {type: 9p}\n',
    ],
    ['an explicit name', '? version\n: 4\n? telemetry\n: false\n'],
    ['a byte order mark', '\ufeffversion: 4\ntelemetry: false\n'],
    ['no end of the last line', 'version: 4\ntelemetry: false # last'],
    ['ends of lines of Windows', '# head\r\nversion: 4\r\ntelemetry: false # t\r\n'],
    ['everything in one line', '{version: 4, telemetry: false, kubernetes: {suppressSudo: true}}'],
    ['a tab behind the colon between brackets', '{version:\t4,kubernetes: {suppressSudo:\ttrue}}'],
    [
      'brackets over lines that come to stand deeper',
      'version: 3\nkubernetes: { WSLIntegrations: {\n  # c\n  Ubuntu: true\n  } } # d\n',
    ],
    [
      'brackets over lines that come between deeper ones',
      'version: 8\napplication:\n  extensions: {allowed: {enabled: true}}\nextensions: {\n "a/b": "1"\n }\n',
    ],
    [
      'a comment that comes between brackets where levels are eight columns',
      'version: 8\napplication:\n        extensions: {allowed: {enabled: true}}\nextensions: {"a/b": "1"} # c\n',
    ],
    [
      'a comment that comes between brackets in brackets where levels are four columns',
      'version: 8\napplication: {extensions: {}, debug: true}\nextensions: {"a/b": "1"} # c\nWSL:\n    integrations: {}\n',
    ],
    ['JSON without spaces', '{"version":4,"telemetry":false,"kubernetes":{"memoryInGB":4}}'],
    ['comments between brackets', '{ # a\n  version: 4, # b\n  # c\n  telemetry: false # d\n  # e\n}\n'],
    ['a tag', 'version: !!int "4"\ntelemetry: !!bool "false"\n'],
    ['names in quotes', '"version": 4\n\'telemetry\': false\n"kubernetes": {"memoryInGB": 4}\n'],
    [
      'a section of brackets over lines',
      'version: 4\nkubernetes: {\n  memoryInGB: 4, # m\n  containerEngine: moby\n  }\n',
    ],
    ['an empty section that has ended', 'version: 4\nkubernetes:\n  experimental: {}\n  port: 6443\n'],
  ])('%s', async (_what, text) => {
    const plain = text.replace(/^\ufeff/, '');
    const old = parseDocument(plain, 'p.yaml').value as JsonObject;
    const { after, value } = await settings(text);
    const wanted = migrate(old, { ...HOST, partial: true });
    expect(withoutEmpty(value as JsonObject)).toEqual(withoutEmpty(wanted));
    expect(after.startsWith('\ufeff')).toBe(text.startsWith('\ufeff'));
    expect(after.endsWith('\n')).toBe(text.endsWith('\n'));
    expect(after.includes('\r\n')).toBe(text.includes('\r\n'));
    expect(after.replaceAll('\r\n', '').includes('\r')).toBe(false);
    expect(commentSigns(after)).toEqual(commentSigns(text));
  });

  test('aliases are kept when they mean the same', async () => {
    const { after } = await settings('version: 15\nvirtualMachine:\n  memoryInGB: &m 4\n  numberCPUs: *m\n');
    expect(after).toBe('version: 19\nvirtualMachine:\n  memoryInGB: &m 4\n  numberCPUs: *m\n');
  });

  test('a list keeps its unchanged lines', async () => {
    const list = '  # ten\n  - " 10.0.0.0/8"  # net\n  # gone\n  - ""\n  - a.example\n';
    const { after, changes } = await settings(
      `version: 9\nexperimental:\n virtualMachine:\n  proxy:\n   noproxy:\n${list.replaceAll('  #', '    #').replaceAll('  -', '    -')}`,
    );
    expect(after).toContain('    # ten\n    - "10.0.0.0/8"    # net\n    - a.example\n');
    expect(after).not.toContain('gone');
    expect(changes.at(-1)).toMatchObject({ to: 'experimental.virtualMachine.proxy.noproxy', comments: ['# gone'] });
  });
});

describe('comments of removed settings', () => {
  test.each([
    [
      'above it and behind it',
      'version: 10\nexperimental:\n  virtualMachine:\n    # for the VPN\n    socketVMNet: true # since May\n    # fast\n    type: vz\n',
      'version: 19\nvirtualMachine:\n  # fast\n  type: vz\n',
      ['# for the VPN', '# since May'],
    ],
    [
      'above a blank line stay',
      'version: 11\nimages: {showAll: true}\nexperimental:\n  # all machines\n\n  # for the VPN\n  virtualMachine: {socketVMNet: true}\n  containerEngine: {webAssembly: {enabled: true}}\n',
      'version: 19\nimages: {showAll: true}\nexperimental:\n  # all machines\n\n  containerEngine: {webAssembly: {enabled: true}}\n',
      ['# for the VPN'],
    ],
    [
      'of a section that had nothing else',
      'version: 10\n# machines\nexperimental:\n  virtualMachine: # ours\n    socketVMNet: true\nimages:\n  showAll: true\n',
      'version: 19\nimages:\n  showAll: true\n',
      ['# ours', '# machines'],
    ],
    [
      'between brackets, the last one',
      'version: 10\nexperimental: {\n  virtualMachine: {\n    proxy: {enabled: true}, # fast\n    # VPN\n    socketVMNet: true # May\n  }\n}\n',
      'version: 19\nexperimental:\n  virtualMachine:\n    proxy: {enabled: true} # fast\n',
      ['# VPN', '# May'],
    ],
    [
      'between brackets, behind a comment of another one',
      'version: 9\nkubernetes: {port: 6443, # usual\n  version: "1.30.2"}\nvirtualMachine: {memoryInGB: 4, # much\n  hostResolver: true}\n',
      'version: 19\nkubernetes: {port: 6443, # usual\n  version: "1.30.2"}\nvirtualMachine:\n  memoryInGB: 4 # much\n',
      [],
    ],
  ])('%s', async (_what, text, wanted, comments) => {
    const { after, changes } = await upgrade(text);
    expect(after).toBe(wanted);
    expect(changes.flatMap((change) => change.comments ?? [])).toEqual(comments);
  });

  test('contain no secrets', async () => {
    const { changes } = await upgrade(
      'version: 10\nexperimental:\n  virtualMachine:\n    socketVMNet: true # not hunter2x\n    proxy: {password: hunter2x}\n',
    );
    expect(changes.flatMap(({ comments = [] }) => comments)).toEqual(['# not ********']);
  });
});

test('a flow collection over hundreds of thousands of lines is moved', async () => {
  const pattern = `"1${'\n a'.repeat(150_000)}"`;
  const { after } = await upgrade(
    `version: 4\ncontainerEngine: {imageAllowList: {enabled: true, patterns: [${pattern}]}}\n`,
  );
  expect(parseDocument(after, 'p.yaml').value).toMatchObject({
    containerEngine: { allowedImages: { patterns: [`1${' a'.repeat(150_000)}`] } },
  });
});

describe('JSON', () => {
  test.each(['\t', '  ', '    '])('keeps its indentation: %j', async (unit) => {
    const text = JSON.stringify(
      { version: 4, telemetry: false, kubernetes: { port: 6443, memoryInGB: 4, options: { traefik: true } } },
      null,
      unit,
    );
    const { after } = await upgrade(`${text}\n`, 'p.json');
    expect(after).toBe(`${JSON.stringify(JSON.parse(after), null, unit)}\n`);
    expect(JSON.parse(after)).toEqual({
      version: 19,
      application: { telemetry: { enabled: false } },
      kubernetes: { port: 6443, options: { traefik: true } },
      virtualMachine: { memoryInGB: 4 },
    });
  });

  test.each([
    '{"version":4,"telemetry":false,"images":{"showAll":true}}',
    '{"version":14,"experimental":{"virtualMachine":{"type":"qemu","useRosetta":false,"mount":{"type":"9p"}}}}',
    '{"version":4,"kubernetes":{"memoryInGB":4,"numberCPUs":2,"port":6443}}',
  ])('without spaces stays without them: %s', async (text) => {
    const { after } = await upgrade(text, 'p.json');
    expect(after).toBe(JSON.stringify(JSON.parse(after)));
  });

  test('without sections keeps its indentation', async () => {
    const { after } = await upgrade('{\n\t"version": 4,\n\t"telemetry": false\n}\n', 'p.json');
    expect(after).toBe(
      '{\n\t"version": 19,\n\t"application": {\n\t\t"telemetry": {\n\t\t\t"enabled": false\n\t\t}\n\t}\n}\n',
    );
  });
});

test('what a value becomes on another platform', async () => {
  const text = 'version: 7\napplication: {pathManagementStrategy: notset, adminAccess: true}\n';
  const { after, platformDependent } = await upgrade(text);
  expect(platformDependent).toEqual(['application.pathManagementStrategy']);
  expect(after).toContain('pathManagementStrategy: rcfiles');
  const windows = await upgradeDocument(Buffer.from(text), 'p.yaml', { platform: 'win32', arch: 'x64' });
  expect(windows.after).toContain('pathManagementStrategy: manual');
  expect((await upgrade('version: 7\napplication: {adminAccess: true}\n')).platformDependent).toEqual([]);
});

describe('refused', () => {
  test('are all reported, with their positions', async () => {
    const error = await refusal('version: 4\ntelemetry: maybe\nkubernetes:\n  memoryInGb: 4\n');
    expect(error.code).toBe('ERR_PROFILE_INVALID');
    expect(error.message).toBe('2 errors in p.yaml; nothing was written.');
    expect(error.details).toEqual([
      expect.stringMatching(/^p\.yaml:\d:\d+: /),
      expect.stringMatching(/^p\.yaml:\d:\d+: /),
    ]);
    expect(error.details.join('\n')).toMatch(/p\.yaml:2:12: .*telemetry/);
    expect(error.details.join('\n')).toMatch(/p\.yaml:4:3: .*memoryInGb.*did you mean memoryInGB/);
  });

  test.each([
    ['no version', 'telemetry: false\n', /version is missing/],
    ['a newer version', 'version: 25\n', /newer than 19/],
    ['two documents', 'version: 4\n---\nversion: 4\n', /second document/],
    ['no document', '', /empty/],
    ['a list', '- version: 4\n', /mapping/],
    ['a merge', 'version: 4\nx: &a {port: 1}\nkubernetes: {<<: *a}\n', /<</],
  ])('%s', async (_what, text, message) => {
    expect((await refusal(text)).details.join('\n')).toMatch(message);
  });
});

describe('desired-state profiles', () => {
  const profile = (settings: string, rest = '') => `apiVersion: rdctl/v1\nkind: Profile\nsettings:\n${settings}${rest}`;

  test('keep the fields around the settings, and their secrets need not exist', async () => {
    const rest =
      'locked:\n  application.telemetry: true\n'.replace('application.telemetry', 'kubernetes') +
      'state: stopped # off\n';
    const text = profile(
      '  version: 14\n  experimental:\n    virtualMachine:\n      type: vz\n      proxy: {password: {fromEnv: NOT_SET_ANYWHERE}}\n',
      rest,
    );
    const { after } = await upgrade(text);
    expect(after).toBe(
      profile(
        '  version: 19\n  experimental:\n    virtualMachine:\n      proxy: {password: {fromEnv: NOT_SET_ANYWHERE}}\n  virtualMachine:\n    type: vz\n',
        rest,
      ),
    );
  });

  test('settings frozen by an old locked profile are mentioned', async () => {
    const text = profile('  version: 10\n  images: {showAll: true}\n', 'locked: {images: true}\n');
    expect((await upgrade(text)).notices).toEqual([expect.stringContaining('webAssembly.enabled')]);
    expect((await upgrade(text.replace('version: 10', 'version: 11'))).notices).toEqual([]);
    expect((await upgrade('version: 10\n', '/etc/x/locked.json')).notices).toHaveLength(1);
    expect((await upgrade('version: 10\n', 'unlocked.yaml')).notices).toEqual([]);
  });
});

test('secrets are masked in the output, and only there', async () => {
  const text = `# hunter2x is the old one\nversion: 9\nexperimental:\n  virtualMachine:\n    type: qemu\n    proxy:\n      username: user\n      password: "hunter2x"\n`;
  const { before, after, shown } = await upgrade(text);
  expect(before).toBe(text);
  expect(after).toContain('password: "hunter2x"');
  expect(shown.before + shown.after).not.toContain('hunter2x');
  expect(shown.after).toContain('password: ********');
});

/** Sections that lost their members are no difference. */
function withoutEmpty(object: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const [name, value] of Object.entries(object)) {
    const inner = typeof value === 'object' && value !== null && !Array.isArray(value) ? withoutEmpty(value) : value;
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner) || Object.keys(inner).length > 0) {
      result[name] = inner;
    }
  }
  return result;
}

function commentSigns(text: string): string[] {
  return [...text.matchAll(/# \w+/g)].map(([comment]) => comment).sort();
}
