import { describe, expect, test } from 'vitest';
import { type CheckContext, checkSettings } from '../../src/settings/check.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { formatFinding } from '../../src/settings/finding.ts';
import { mergeSettings } from '../../src/settings/merge.ts';
import { parseDocument } from '../../src/settings/parse.ts';

const HERE: CheckContext = { platform: 'linux', arch: 'x64' };

function findings(source: string, context: Partial<CheckContext> = {}, prefix = ''): string[] {
  const document = parseDocument(source, 'p.yaml');
  expect(document.findings).toEqual([]);
  return checkSettings(document, prefix, { ...HERE, ...context }).map(formatFinding);
}

describe('one mistake each', () => {
  test.each<[string, string, string]>([
    [
      'a misspelt name',
      'version: 19\nkubernetes:\n  versoin: "1.30.2"\n',
      '3:3: unknown setting "kubernetes.versoin" (/kubernetes/versoin); did you mean "version"?',
    ],
    [
      'a name of another section',
      'version: 19\nmemoryInGB: 4\n',
      '2:1: unknown setting "memoryInGB" (/memoryInGB); did you mean "virtualMachine.memoryInGB"?',
    ],
    [
      'a version that YAML takes for a number',
      'version: 19\nkubernetes: {version: 1.30}\n',
      '2:23: "kubernetes.version" cannot be 1.30 (/kubernetes/version); expected a text: write "1.30"',
    ],
    [
      'a namespace that YAML takes for a boolean',
      'version: 19\nimages: {namespace: true}\n',
      '2:21: "images.namespace" cannot be true (/images/namespace); expected a text: write "true"',
    ],
    [
      'a text for a boolean',
      'version: 19\nkubernetes: {enabled: "true"}\n',
      '2:23: "kubernetes.enabled" cannot be "true" (/kubernetes/enabled); expected true or false',
    ],
    [
      'a text for a number',
      'version: 19\nkubernetes: {port: "6443"}\n',
      '2:20: "kubernetes.port" cannot be "6443" (/kubernetes/port); expected an integer from 1 to 65535',
    ],
    [
      'out of range',
      'version: 19\nvirtualMachine: {memoryInGB: 0}\n',
      '2:30: "virtualMachine.memoryInGB" cannot be 0 (/virtualMachine/memoryInGB); expected an integer of at least 1 (GiB)',
    ],
    [
      'a misspelt value',
      'version: 19\ncontainerEngine: {name: mobi}\n',
      '2:25: "containerEngine.name" cannot be mobi (/containerEngine/name); expected one of "containerd", "moby"; did you mean "moby"?',
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
    ['no version', 'kubernetes: {enabled: false}\n', '1:1: the settings have no "version"; expected "version: 19"'],
    [
      'a version as a text',
      'version: "19"\n',
      '1:10: "19" is no settings version (/version); expected a version from 1 to 19',
    ],
    [
      'a version of the future',
      'version: 99\n',
      '1:10: settings version 99 is newer than the newest one known here (/version); expected a version from 1 to 19',
    ],
    [
      'half a version',
      'version: 2.50\n',
      '1:10: 2.50 is no settings version (/version); expected a version from 1 to 19',
    ],
    ['version nothing', 'version: 0\n', '1:10: 0 is no settings version (/version); expected a version from 1 to 19'],
    [
      'a version that is a list',
      'version: [19]\n',
      '1:10: "version" is no number (/version); expected a version from 1 to 19',
    ],
    ['a list', '[]\n', '1:1: the settings are no object; expected an object with "version" and settings'],
  ])('%s', (_, source, line) => {
    expect(findings(source)).toEqual([`p.yaml:${line}`]);
  });
});

describe('documents of older versions', () => {
  test.each<[string, string, string]>([
    [
      'a wrong type where it was then',
      'version: 4\nkubernetes: {memoryInGB: "4"}\n',
      '2:26: "kubernetes.memoryInGB" cannot be "4" (/kubernetes/memoryInGB); expected an integer',
    ],
    [
      'a number for a version',
      'version: 12\nkubernetes: {version: 1.30}\n',
      '2:23: "kubernetes.version" cannot be 1.30 (/kubernetes/version); expected a text: write "1.30"',
    ],
    [
      'a field of a newer version',
      'version: 10\nvirtualMachine: {type: qemu}\n',
      '2:18: "virtualMachine.type" came with settings version 15, and this document says 10 (/virtualMachine/type); expected "version: 15" or newer',
    ],
    [
      'an unknown name',
      'version: 14\nkubernetes: {ingres: {}}\n',
      '2:14: unknown setting "kubernetes.ingres" (/kubernetes/ingres); did you mean "ingress"?',
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
  ])('%s', (_, source, line) => {
    expect(findings(source)).toEqual([`p.yaml:${line}`]);
  });

  test('fields that old releases left behind are no mistakes', () => {
    expect(findings('version: 10\ncontainerEngine: {allowedImages: {locked: false}}\n')).toEqual([]);
    expect(findings('version: 6\nexperimental: {virtualMachine: {mount: {9p: {msizeInKB: 128}}}}\n')).toEqual([]);
    expect(findings('version: 4\nkubernetes: {experimentalHostResolver: true, suppressSudo: true}\n')).toEqual([]);
  });
});

test('all mistakes at once, below a prefix', () => {
  const source = 'kind: Profile\nsettings:\n  version: 19\n  nothing: 1\n  kubernetes: {port: 0, enabled: 1}\n';
  expect(findings(source, {}, '/settings')).toEqual([
    'p.yaml:4:3: unknown setting "nothing" (/settings/nothing)',
    'p.yaml:5:22: "kubernetes.port" cannot be 0 (/settings/kubernetes/port); expected an integer from 1 to 65535',
    'p.yaml:5:34: "kubernetes.enabled" cannot be 1 (/settings/kubernetes/enabled); expected true or false',
  ]);
});

test('a secret is never quoted', () => {
  const lines = findings('version: 19\nexperimental: {virtualMachine: {proxy: {password: 12345}}}\n', {
    platform: 'win32',
  });
  expect(lines).toHaveLength(1);
  expect(lines.join()).not.toContain('12345');
  const older = findings('version: 12\nexperimental: {virtualMachine: {proxy: {password: 12345}}}\n', {
    platform: 'win32',
  });
  expect(older).toHaveLength(1);
  expect(older.join()).not.toContain('12345');
});

test('a secret may be named where the caller says so', () => {
  const proxy = (version: number, password: string) =>
    `version: ${version}\nexperimental: {virtualMachine: {proxy: {password: ${password}}}}\n`;
  const windows = { platform: 'win32', references: true } as const;
  expect(findings(proxy(19, '{fromEnv: NAME}'), windows)).toEqual([]);
  expect(findings(proxy(12, '{fromFile: a.txt}'), windows)).toEqual([]);
  expect(findings(proxy(19, '{fromEnv: NAME}'), { platform: 'win32' })).toHaveLength(1);
  expect(findings(proxy(19, '{fromEnv: NAME, fromFile: x}'), windows)).toHaveLength(1);
  expect(findings(proxy(19, '{fromEnv: 3}'), windows)).toHaveLength(1);
});

test('synonyms and spellings pass, and so does removing an entry', () => {
  const source =
    'version: 19\ncontainerEngine: {name: docker}\nkubernetes: {version: v1.30.2+k3s1}\napplication: {extensions: {installed: {org/a: null}}}\n';
  const current = mergeSettings(defaultSettings(HERE), {
    application: { extensions: { installed: { 'org/a': '1' } } },
  });
  expect(findings(source, { current, kubernetesVersions: ['1.30.2'] })).toEqual([]);
});

test('a smaller disk is wrong only against a disk that is known', () => {
  const source = 'version: 19\nexperimental: {virtualMachine: {diskSize: 50GiB}}\n';
  expect(findings(source)).toEqual([]);
  expect(findings(source, { current: defaultSettings(HERE) })).toEqual([
    'p.yaml:2:43: Cannot decrease "experimental.virtualMachine.diskSize" from 100GiB to 50GiB (/experimental/virtualMachine/diskSize); expected at least "100GiB"',
  ]);
});
