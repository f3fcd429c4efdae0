import { describe, expect, test } from 'vitest';
import { isObject } from '../../src/json.ts';
import { type CheckContext, checkSettings } from '../../src/settings/check.ts';
import { formatFinding } from '../../src/settings/issue.ts';
import { parseDocument } from '../../src/settings/parse.ts';

const HERE: CheckContext = { platform: 'linux', arch: 'x64' };

async function check(source: string, context: Partial<CheckContext> = {}, at: '' | '/settings' = '') {
  const document = parseDocument(source, 'p.yaml');
  expect(document.findings).toEqual([]);
  const value = isObject(document.value) && at !== '' ? document.value.settings : document.value;
  if (!isObject(value)) throw new Error('the test has no settings');
  return checkSettings({ document, at, settings: value }, { ...HERE, ...context });
}

async function findings(...args: Parameters<typeof check>): Promise<string[]> {
  return (await check(...args)).findings.map(formatFinding);
}

describe('single errors', () => {
  test.each<[string, string, string]>([
    [
      'a misspelt name',
      'version: 19\nkubernetes:\n  versoin: "1.30.2"\n',
      '3:3: unknown setting "kubernetes.versoin" (/kubernetes/versoin); did you mean version?',
    ],
    [
      'a name of another section',
      'version: 19\nmemoryInGB: 4\n',
      '2:1: unknown setting "memoryInGB" (/memoryInGB); did you mean virtualMachine.memoryInGB?',
    ],
    [
      'a version that YAML takes for a number',
      'version: 19\nkubernetes: {version: 1.30}\n',
      '2:23: "kubernetes.version" cannot be 1.30 (/kubernetes/version); expected a string; did you mean "1.30"?',
    ],
    [
      'a namespace that YAML takes for a boolean',
      'version: 19\nimages: {namespace: true}\n',
      '2:21: "images.namespace" cannot be true (/images/namespace); expected a string; did you mean "true"?',
    ],
    [
      'a text for a boolean',
      'version: 19\nkubernetes: {enabled: "true"}\n',
      '2:23: "kubernetes.enabled" cannot be "true" (/kubernetes/enabled); expected true or false; did you mean true?',
    ],
    [
      'a text for a number',
      'version: 19\nkubernetes: {port: "6443"}\n',
      '2:20: "kubernetes.port" cannot be "6443" (/kubernetes/port); expected an integer from 1 to 65535; did you mean 6443?',
    ],
    [
      'out of range',
      'version: 19\nvirtualMachine: {memoryInGB: 0}\n',
      '2:30: "virtualMachine.memoryInGB" cannot be 0 (/virtualMachine/memoryInGB); expected an integer of at least 1 (GiB)',
    ],
    [
      'a misspelt value',
      'version: 19\ncontainerEngine: {name: mobi}\n',
      '2:25: "containerEngine.name" cannot be mobi (/containerEngine/name); expected one of "containerd", "moby"; did you mean moby?',
    ],
    [
      'a value for a section',
      'version: 19\nkubernetes: on\n',
      '2:13: "kubernetes" is a section, not a value (/kubernetes); expected an object with settings',
    ],
    [
      'nothing for a section',
      'version: 19\nkubernetes:\n',
      '2:12: "kubernetes" is a section, not a value (/kubernetes); expected an object with settings',
    ],
    [
      'another platform',
      'version: 19\nWSL: {integrations: {Debian: true}}\n',
      '2:21: "WSL.integrations" can be changed on Windows only (/WSL/integrations)',
    ],
    [
      'another setting',
      'version: 19\nexperimental: {virtualMachine: {mount: {9p: {cacheMode: none}}}}\n',
      '2:57: Setting experimental.virtualMachine.mount.9p.cacheMode can only be changed when virtualMachine.mount.type is "9p" (/experimental/virtualMachine/mount/9p/cacheMode)',
    ],
    [
      'an entry of a map',
      'version: 19\ndiagnostics: {mutedChecks: {"a/b": 1}}\n',
      '2:36: "diagnostics.mutedChecks" cannot be 1 (/diagnostics/mutedChecks/a~1b); expected true, false or null',
    ],
    ['no version', 'kubernetes: {enabled: false}\n', '1:1: version is missing; expected version: 19'],
    [
      'a version as a text',
      'version: "19"\n',
      '1:10: "19" is not a settings version (/version); expected an integer from 1 to 19',
    ],
    [
      'a version of the future',
      'version: 99\n',
      '1:10: 99 is newer than 19, the newest settings version this release knows (/version); expected an integer from 1 to 19',
    ],
    [
      'half a version',
      'version: 2.50\n',
      '1:10: 2.50 is not a settings version (/version); expected an integer from 1 to 19',
    ],
    [
      'version nothing',
      'version: 0\n',
      '1:10: 0 is not a settings version (/version); expected an integer from 1 to 19',
    ],
    [
      'a version that is a list',
      'version: [19]\n',
      '1:10: version is not a number (/version); expected an integer from 1 to 19',
    ],
  ])('%s', async (_, source, line) => {
    expect(await findings(source)).toEqual([`p.yaml:${line}`]);
  });
});

describe('a wrong value', () => {
  test.each<[string, string]>([
    ['WSL: {integrations: [1, 2]}', '"WSL.integrations" cannot be [1, 2]'],
    ['WSL: {integrations: {Debian: 1}}', '"WSL.integrations" cannot be 1'],
    ['virtualMachine: {useRosetta: "maybe"}', '"virtualMachine.useRosetta" cannot be "maybe"'],
    ['experimental: {virtualMachine: {proxy: {port: -5}}}', '"experimental.virtualMachine.proxy.port" cannot be -5'],
    [
      'experimental: {virtualMachine: {proxy: {password: [x]}}}',
      '"experimental.virtualMachine.proxy.password" has an invalid value',
    ],
    ['experimental: {virtualMachine: {proxy: {noproxy: ["a b"]}}}', 'has invalid entries'],
    [
      'experimental: {virtualMachine: {mount: {9p: {msizeInKib: 3}}}}',
      '"experimental.virtualMachine.mount.9p.msizeInKib" cannot be 3',
    ],
  ])('is reported on a platform without the setting: %s', async (source, text) => {
    const { findings: found } = await check(`version: 19\n${source}\n`);
    expect(found.map(({ message }) => message)).toEqual([expect.stringContaining(text)]);
    expect(found.map(({ code }) => code)).not.toContain('platform');
  });

  test('of a disk is reported on Windows as well', async () => {
    const { findings: found } = await check('version: 19\nexperimental: {virtualMachine: {diskSize: abc}}\n', {
      platform: 'win32',
    });
    expect(found.map(({ code }) => code)).toEqual(['format']);
  });
});

describe('documents of older versions', () => {
  test.each<[string, string, string]>([
    [
      'a wrong type where it was then',
      'version: 4\nkubernetes: {memoryInGB: "4"}\n',
      '2:26: "kubernetes.memoryInGB" cannot be "4" (/kubernetes/memoryInGB); expected an integer; did you mean 4?',
    ],
    [
      'a number for a version',
      'version: 12\nkubernetes: {version: 1.30}\n',
      '2:23: "kubernetes.version" cannot be 1.30 (/kubernetes/version); expected a string; did you mean "1.30"?',
    ],
    [
      'a field of a newer version',
      'version: 10\nvirtualMachine: {type: qemu}\n',
      '2:18: "virtualMachine.type" needs settings version 15; the document says 10 (/virtualMachine/type)',
    ],
    [
      'an unknown name',
      'version: 14\nkubernetes: {ingres: {}}\n',
      '2:14: unknown setting "kubernetes.ingres" (/kubernetes/ingres); did you mean ingress?',
    ],
    [
      'a rule of today, at the old place',
      'version: 14\nexperimental: {virtualMachine: {type: vz}}\n',
      '2:39: "virtualMachine.type" can be changed on macOS only (/experimental/virtualMachine/type)',
    ],
    [
      'a tag that cannot be',
      'version: 9\napplication: {extensions: {installed: {org/a: "-"}}}\n',
      '2:47: application.extensions.installed: "org/a" has invalid tag "-" (/application/extensions/installed/org~1a); expected an image name without tag, and its tag',
    ],
  ])('%s', async (_, source, line) => {
    expect(await findings(source)).toEqual([`p.yaml:${line}`]);
  });

  test('fields left behind by old releases are accepted', async () => {
    expect(await findings('version: 10\ncontainerEngine: {allowedImages: {locked: false}}\n')).toEqual([]);
    expect(await findings('version: 6\nexperimental: {virtualMachine: {mount: {9p: {msizeInKB: 128}}}}\n')).toEqual([]);
    expect(await findings('version: 4\nkubernetes: {experimentalHostResolver: true, suppressSudo: true}\n')).toEqual(
      [],
    );
  });
});

describe('a value that JSON cannot hold is one finding, with the text of the document', () => {
  test.each([
    ['kubernetes: {port: 1e999}', '2:20: 1e999 cannot be represented in JSON (/kubernetes/port)'],
    ['kubernetes: {enabled: .nan}', '2:23: .nan cannot be represented in JSON (/kubernetes/enabled)'],
    [
      'containerEngine: {allowedImages: {patterns: [a, -.inf]}}',
      '2:49: -.inf cannot be represented in JSON (/containerEngine/allowedImages/patterns/1)',
    ],
    ['kubernetes: .nan', '2:13: .nan cannot be represented in JSON (/kubernetes)'],
    [
      'experimental: {virtualMachine: {proxy: {password: 1e999}}}',
      '2:51: this value cannot be represented in JSON (/experimental/virtualMachine/proxy/password)',
    ],
  ])('%s', async (source, line) => {
    for (const version of [19, 16]) {
      const document = parseDocument(`version: ${version}\n${source}\n`, 'p.yaml');
      if (!isObject(document.value)) throw new Error('the test has no settings');
      const { findings: found } = await checkSettings({ document, at: '', settings: document.value }, HERE);
      expect([...document.findings, ...found].map(formatFinding)).toEqual([`p.yaml:${line}`]);
    }
  });
});

test.each([
  ['yes', 'true'],
  ['On', 'true'],
  ['"yes"', 'true'],
  ['no', 'false'],
  ['off', 'false'],
])('the text %s in place of a boolean: did you mean %s', async (written, meant) => {
  const [line] = await findings(`version: 19\nkubernetes: {enabled: ${written}}\n`);
  expect(line).toContain(`; expected true or false; did you mean ${meant}?`);
  const [entry] = await findings(`version: 19\ndiagnostics: {mutedChecks: {a: ${written}}}\n`);
  expect(entry).toContain(`; expected true, false or null; did you mean ${meant}?`);
});

test('all errors at once, below a prefix', async () => {
  const source = 'kind: Profile\nsettings:\n  version: 19\n  nothing: 1\n  kubernetes: {port: 0, enabled: 1}\n';
  expect(await findings(source, {}, '/settings')).toEqual([
    'p.yaml:4:3: unknown setting "nothing" (/settings/nothing)',
    'p.yaml:5:22: "kubernetes.port" cannot be 0 (/settings/kubernetes/port); expected an integer from 1 to 65535',
    'p.yaml:5:34: "kubernetes.enabled" cannot be 1 (/settings/kubernetes/enabled); expected true or false',
  ]);
});

test('a secret is never quoted', async () => {
  const lines = await findings('version: 19\nexperimental: {virtualMachine: {proxy: {password: 12345}}}\n', {
    platform: 'win32',
  });
  expect(lines).toHaveLength(1);
  expect(lines.join()).not.toContain('12345');
  const older = await findings('version: 12\nexperimental: {virtualMachine: {proxy: {password: 12345}}}\n', {
    platform: 'win32',
  });
  expect(older).toHaveLength(1);
  expect(older.join()).not.toContain('12345');
});

test('synonyms and other spellings are accepted, and so is removing an entry', async () => {
  const source =
    'version: 19\ncontainerEngine: {name: docker}\nkubernetes: {version: v1.30.2+k3s1}\napplication: {extensions: {installed: {org/a: null}}}\n';
  const { findings: found, settings } = await check(source);
  expect(found).toEqual([]);
  expect(settings).toEqual({
    version: 19,
    containerEngine: { name: 'moby' },
    kubernetes: { version: '1.30.2' },
    application: { extensions: { installed: { 'org/a': null } } },
  });
});

test('a disk smaller than the default is accepted: the actual disk is unknown', async () => {
  expect(await findings('version: 19\nexperimental: {virtualMachine: {diskSize: 50GiB}}\n')).toEqual([]);
});

test('fields removed since older versions are gone from the settings', async () => {
  const { settings } = await check(
    'version: 6\ncontainerEngine: {allowedImages: {locked: true, enabled: true}}\nexperimental: {virtualMachine: {mount: {9p: {msizeInKB: 128}}}}\n',
  );
  expect(settings).toEqual({
    version: 19,
    containerEngine: { allowedImages: { enabled: true } },
  });
});
