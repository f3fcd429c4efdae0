import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { provideKubeContext, withdrawKubeContext } from '../../../src/features/host-integration/kube-config.ts';
import { type IntegrationTargets, integrationTargets } from '../../../src/features/host-integration/targets.ts';
import { editOperations } from '../../../src/features/host-integration/user-file.ts';
import { places } from '../../../src/state/places.ts';
import { testTargets } from '../../helpers/integration-targets.ts';

const CLUSTER = { 'certificate-authority-data': 'Q0E=', server: 'https://127.0.0.1:6443' };
const KUBECONFIG = {
  clusters: [{ name: 'rdctl', cluster: CLUSTER }],
  users: [{ name: 'rdctl', user: { 'client-certificate-data': 'Q0VSVA==', 'client-key-data': 'S0VZ' } }],
};
const WORK =
  'apiVersion: v1\nclusters:\n- cluster:\n    server: https://work.example\n  name: work\ncurrent-context: work\n';

let targets: IntegrationTargets;
let file: string;
let own: string;
beforeEach(() => {
  targets = testTargets();
  file = join(targets.home, '.kube', 'config');
  own = join(targets.home, 'ours');
  writeFileSync(own, JSON.stringify(KUBECONFIG));
});

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o640 });
}

test('creates a private file for a user without one, and removes it again', async () => {
  expect(await provideKubeContext(own, targets)).toEqual({ part: 'kubeconfig', file, state: 'managed' });
  expect(parse(readFileSync(file, 'utf8'))).toMatchObject({
    'current-context': 'rdctl',
    clusters: [{ cluster: CLUSTER }],
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await withdrawKubeContext(targets)).toEqual([{ part: 'kubeconfig', file, state: 'clean' }]);
  expect(existsSync(dirname(file))).toBe(false);
});

test("adds an entry beside the user's, keeping the selection, the mode and every byte", async () => {
  write(file, WORK);
  await provideKubeContext(own, targets);
  const merged = parse(readFileSync(file, 'utf8'));
  expect(merged.clusters.map(({ name }: { name: string }) => name)).toEqual(['work', 'rdctl']);
  expect(merged['current-context']).toBe('work');
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(readdirSync(dirname(file))).toEqual(['config']);
  await withdrawKubeContext(targets);
  expect(readFileSync(file, 'utf8')).toBe(WORK);
});

test('writes nothing when nothing changes', async () => {
  await provideKubeContext(own, targets);
  const before = statSync(file, { bigint: true });
  await provideKubeContext(own, targets);
  expect(statSync(file, { bigint: true }).ino).toBe(before.ino);
});

test('reports a broken file and leaves it unchanged', async () => {
  write(file, 'clusters: [\n');
  expect(await provideKubeContext(own, targets)).toMatchObject({
    state: 'failed',
    message: expect.stringMatching(/not YAML/),
  });
  expect(await withdrawKubeContext(targets)).toMatchObject([{ state: 'clean' }]);
  expect(readFileSync(file, 'utf8')).toBe('clusters: [\n');
  expect(readdirSync(dirname(file))).toEqual(['config']);
});

test('leaves a file that is not text unchanged', async () => {
  mkdirSync(dirname(file));
  writeFileSync(file, Buffer.from([0x61, 0xff]));
  expect(await provideKubeContext(own, targets)).toMatchObject({
    state: 'failed',
    message: expect.stringMatching(/UTF-8/),
  });
});

test('leaves a cluster of that name on another computer alone', async () => {
  write(file, WORK.replace('name: work', 'name: rdctl'));
  expect(await provideKubeContext(own, targets)).toMatchObject({
    state: 'left',
    message: expect.stringMatching(/another computer/),
  });
  expect(readFileSync(file, 'utf8')).toBe(WORK.replace('name: work', 'name: rdctl'));
});

test('waits for the lock of kubectl with a limit, and never breaks it', async () => {
  write(file, WORK);
  writeFileSync(`${file}.lock`, '');
  let pauses = 0;
  const sleep = async () => {
    pauses += 1;
  };
  expect(await provideKubeContext(own, targets, { sleep })).toMatchObject({
    state: 'failed',
    message: expect.stringMatching(/holds its lock/),
  });
  expect(pauses).toBe(19);
  expect(readFileSync(file, 'utf8')).toBe(WORK);
  expect(existsSync(`${file}.lock`)).toBe(true);
});

test('a failed write keeps the old content and leaves no lock', async () => {
  write(file, WORK);
  const operations = { ...editOperations, rename: () => Promise.reject(new Error('disk')) };
  expect(await provideKubeContext(own, targets, { operations })).toMatchObject({ state: 'failed' });
  expect(readFileSync(file, 'utf8')).toBe(WORK);
  expect(readdirSync(dirname(file))).toEqual(['config']);
});

test('with several files, writes the first that exists and cleans all', async () => {
  const [one, two] = [join(targets.home, 'one'), join(targets.home, 'two')];
  targets = { ...targets, kubeconfigs: [one, two] };
  expect((await provideKubeContext(own, targets)).file).toBe(two);
  write(one, WORK);
  expect((await provideKubeContext(own, targets)).file).toBe(one);
  expect((await withdrawKubeContext(targets)).map((outcome) => outcome.state)).toEqual(['clean', 'clean']);
  expect(existsSync(two)).toBe(false);
});

test("concurrent edits do not lose each other's work", async () => {
  write(file, WORK);
  const second = { ...targets, identity: { ...targets.identity, kubeContext: 'second' } };
  const outcomes = await Promise.all([provideKubeContext(own, targets), provideKubeContext(own, second)]);
  expect(outcomes.map(({ state }) => state)).toEqual(['managed', 'managed']);
  const names = parse(readFileSync(file, 'utf8')).clusters.map(({ name }: { name: string }) => name);
  expect(names.sort()).toEqual(['rdctl', 'second', 'work']);
});

test('which files it edits', () => {
  const env = { KUBECONFIG: '/a/one:relative::/b/two' };
  const of = (more: Record<string, string>) =>
    integrationTargets({
      env: more,
      platform: 'linux',
      homedir: '/home/x',
      places: places(more, 'linux', '/home/x'),
      self: ['n'],
    });
  expect(of(env)).toMatchObject({ kubeconfigs: ['/a/one', '/b/two'] });
  expect(of({})).toMatchObject({ kubeconfigs: ['/home/x/.kube/config'] });
  expect(of({ ...env, RDCTL_HOME: '/r' })).toEqual({ offBecause: expect.any(String) });
});

test('reports a missing cluster file', async () => {
  chmodSync(own, 0o600);
  expect(await provideKubeContext(join(targets.home, 'none'), targets)).toMatchObject({
    state: 'failed',
    message: expect.stringMatching(/kubeconfig of the cluster is missing/),
  });
  expect(existsSync(file)).toBe(false);
});
