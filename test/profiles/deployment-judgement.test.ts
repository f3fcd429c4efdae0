import { describe, expect, test } from 'vitest';
import { judgement } from '../../profiles/check/check.ts';
import { readDeploymentInput } from '../../profiles/document/deployment-input.ts';
import { type Selection, selectSettings } from '../../profiles/document/selection.ts';
import type { Part } from '../../profiles/formats/format.ts';

interface Choice extends Partial<Selection> {
  part?: Part;
}

async function evaluate(document: object, choice: Choice = {}) {
  const bytes = Buffer.from(JSON.stringify(document));
  const selection: Selection = {
    part: 'locked',
    platform: 'win32',
    only: [],
    except: [],
    changedOnly: false,
    keepVersion: false,
    inForce: false,
    ...choice,
  };
  const input = await readDeploymentInput({ name: 'p', label: 'p', bytes, size: bytes.length }, selection.platform);
  return judgement(input, await selectSettings(input, selection), selection);
}

describe('what the application would reject', () => {
  test('a setting that its system does not have', async () => {
    const settings = { virtualMachine: { memoryInGB: 8 }, images: { showAll: true } };
    expect(await evaluate(settings)).toEqual({
      warnings: [
        'the application on Windows would refuse this profile: p:1:33: virtualMachine.memoryInGB: macOS and Linux only; nothing but 2 passes elsewhere',
      ],
      notes: [],
    });
    expect(await evaluate(settings, { platform: 'darwin' })).toEqual({ warnings: [], notes: [] });
    expect(await evaluate(settings, { except: ['virtualMachine'] })).toEqual({ warnings: [], notes: [] });
  });

  test('conflicting values are checked among the chosen settings only', async () => {
    const settings = { virtualMachine: { type: 'qemu', mount: { type: '9p' } } };
    expect((await evaluate(settings, { platform: 'darwin' })).warnings).toEqual([]);
    expect((await evaluate(settings, { platform: 'darwin', except: ['virtualMachine.type'] })).warnings).toEqual([
      expect.stringMatching(/^the application on macOS would refuse this profile: p:1:50: virtualMachine.mount.type: /),
    ]);
  });

  test('a locked cluster version in another spelling, or empty, while the cluster is on', async () => {
    const kubernetes = (version: string, enabled: boolean) => ({ kubernetes: { enabled, version } });
    expect((await evaluate(kubernetes('v1.31.0', true))).warnings).toEqual([
      expect.stringMatching(/^the application on Windows would refuse this profile: p:1:41: kubernetes.version: /),
    ]);
    expect((await evaluate(kubernetes('v1.31.0', false))).warnings).toEqual([]);
    expect((await evaluate(kubernetes('NattyBo', true))).warnings).toHaveLength(1);
    expect((await evaluate(kubernetes('1.31.0', true))).warnings).toEqual([]);
  });

  test('a smaller disk than the default', async () => {
    const settings = { experimental: { virtualMachine: { diskSize: '50GiB' } } };
    expect((await evaluate(settings, { platform: 'darwin' })).warnings).toEqual([
      'the application on macOS would refuse this profile: p:1:47: experimental.virtualMachine.diskSize: a profile cannot ask for less than the default, "100GiB"',
    ]);
  });

  test('at the position where older settings were written', async () => {
    const settings = { version: 4, kubernetes: { memoryInGB: 8 } };
    expect((await evaluate(settings, { part: 'defaults' })).warnings).toEqual([
      expect.stringMatching(/would refuse this profile: p:1:41: virtualMachine.memoryInGB: macOS and Linux only/),
    ]);
    const old = { version: 10, experimental: { virtualMachine: { mount: { type: '9p' } } } };
    expect((await evaluate(old, { keepVersion: true })).warnings).toEqual([
      expect.stringMatching(
        /^the application on Windows, as of 1.12, would refuse this profile: p:1:65: experimental.virtualMachine.mount.type: /,
      ),
    ]);
  });
});

test('what it would ignore or change', async () => {
  expect((await evaluate({ containerEngine: { name: 'docker' } })).warnings).toEqual([
    'the application on Windows would ignore a setting: p:1:28: containerEngine.name: it is stored as written, but no engine is named "docker"; did you mean moby?',
  ]);
  const defaults = await evaluate({ kubernetes: { version: 'NattyBo' } }, { part: 'defaults' });
  expect(defaults).toEqual({
    warnings: [],
    notes: [expect.stringMatching(/^the application on Windows would change a setting: p:1:26: kubernetes.version: /)],
  });
});

test('an unknown name that is written anyway is reported once', async () => {
  const settings = { version: 10, experimental: { kubernetes: { options: { spinkube: false } } } };
  for (const platform of ['linux', 'win32'] as const) {
    expect(await evaluate(settings, { keepVersion: true, platform })).toEqual({ warnings: [], notes: [] });
  }
});

test('a name that merely starts or ends like another does not hide it', async () => {
  const settings = { version: 6, extensions: { 'a/b': true }, xextensions: 1, extensionsx: 1 };
  expect((await evaluate(settings, { keepVersion: true, platform: 'linux' })).warnings).toEqual([
    'the application on Linux, as of 1.8, would ignore a setting: p:1:27: extensions: 1.9 is the first release with it',
  ]);
});
