import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Locate, loadDesired } from '../../profiles/document/load.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

async function locate(files: Record<string, string>): Promise<Locate> {
  const cwd = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  const { desired, findings } = await loadDesired(Object.keys(files), {
    cwd,
    env: {},
    platform: 'linux',
    arch: 'x64',
    readStdin: async () => Buffer.alloc(0),
  });
  expect(findings).toEqual([]);
  if (!desired) throw new Error('the documents are not valid');
  return desired.locate;
}

const PROFILE = `apiVersion: rdctl/v1
kind: Profile
settings:
  version: 19
  images:
    showAll: false
  diagnostics: { mutedChecks: { A: true } }
prune: [diagnostics.mutedChecks]
state: stopped
portForwards: [{ namespace: a, service: b, k8sPort: 1, hostPort: 2 }]
`;

test('locates a setting by its key or value', async () => {
  const at = await locate({ 'p.yaml': PROFILE });
  const pointer = '/settings/images/showAll';
  expect(at(['images', 'showAll'], 'key')).toEqual({ file: 'p.yaml', line: 6, column: 5, pointer });
  expect(at(['images', 'showAll'], 'value')).toEqual({ file: 'p.yaml', line: 6, column: 14, pointer });
  expect(at(['diagnostics', 'mutedChecks', 'A'], 'key')).toMatchObject({ line: 7, column: 33 });
});

test('locates fields beside the settings', async () => {
  const at = await locate({ 'p.yaml': PROFILE });
  expect(at(['state'], 'key')).toMatchObject({ line: 9, column: 1, pointer: '/state' });
  expect(at(['portForwards', 'a/b:1'], 'key')).toMatchObject({ line: 10, column: 16, pointer: '/portForwards/0' });
});

test('locates an entry that prune removes', async () => {
  const at = await locate({ 'p.yaml': PROFILE });
  expect(at(['diagnostics', 'mutedChecks', 'OTHER'], 'key')).toMatchObject({ line: 8, pointer: '/prune/0' });
});

test('locates nothing that no document mentions', async () => {
  const at = await locate({ 'p.yaml': PROFILE, 'b.yaml': 'version: 19\n' });
  expect(at(['kubernetes', 'enabled'], 'key')).toBeUndefined();
  expect((await locate({ 'b.yaml': 'version: 19\n' }))(['state'], 'key')).toBeUndefined();
});

test('the last document wins; an earlier one counts for what it alone mentions', async () => {
  const at = await locate({ 'a.yaml': PROFILE, 'b.yaml': 'version: 19\nimages: { showAll: true }\n' });
  expect(at(['images', 'showAll'], 'key')).toMatchObject({ file: 'b.yaml', line: 2, column: 11 });
  expect(at(['diagnostics', 'mutedChecks', 'A'], 'key')).toMatchObject({ file: 'a.yaml', line: 7 });
});

test('locates a setting of an older document under its old name', async () => {
  const at = await locate({ 'p.yaml': 'version: 4\nkubernetes:\n  containerEngine: moby\ntelemetry: true\n' });
  expect(at(['containerEngine', 'name'], 'key')).toMatchObject({ line: 3, pointer: '/kubernetes/containerEngine' });
  expect(at(['application', 'telemetry', 'enabled'], 'key')).toMatchObject({ line: 4, pointer: '/telemetry' });
});
