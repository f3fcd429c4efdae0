import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { places } from '../../src/state/places.ts';
import { followedIntegration } from '../helpers/followed-integration.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

let home: string;
beforeEach(() => {
  home = temporaryDirectory();
  writeFileSync(join(home, '.bashrc'), '# mine\n');
});

const integration = (changes: Parameters<typeof followedIntegration>[1] = {}) => followedIntegration(home, changes);

const text = (...names: string[]) => readFileSync(join(home, ...names), 'utf8');
const states = (of: { integrationOutcomes(): readonly { part: string; state: string }[] }, part: string) =>
  of
    .integrationOutcomes()
    .filter((each) => each.part === part)
    .map(({ state }) => state);

test('starts with the settings, and with the engine once it runs', async () => {
  const user = integration();
  await expect.poll(() => text('.bashrc')).toContain('MANAGED BY RDCTL');
  expect(existsSync(join(home, '.docker'))).toBe(false);
  user.mobyRuns('unix:///one.sock');
  await expect.poll(() => states(user, 'docker-context')).toEqual(['managed', 'managed']);
  expect(JSON.parse(text('.docker', 'config.json'))).toEqual({ currentContext: 'rdctl' });
  await user.close();
  expect(user.lines.filter(({ level }) => level === 'warn')).toEqual([]);
});

/** The file of a cluster with this key. */
function clusterFile(key: string): string {
  const file = join(home, 'cluster.json');
  const cluster = { server: 'https://127.0.0.1:6443', 'certificate-authority-data': 'Q0E=' };
  const user = { 'client-certificate-data': 'Q0VSVA==', 'client-key-data': key };
  writeFileSync(file, JSON.stringify({ clusters: [{ name: 'x', cluster }], users: [{ name: 'x', user }] }));
  return file;
}

test('a ready cluster is in the kubeconfig, with its current keys, until it is disabled', async () => {
  const user = integration();
  const inUse = join(home, '.kube', 'config');
  user.clusterRuns(clusterFile('b25l'), false);
  user.clusterRuns('simulated:kubeconfig');
  user.clusterStops();
  user.clusterRuns(clusterFile('b25l'));
  await expect.poll(() => states(user, 'kubeconfig')).toEqual(['managed']);
  expect(text('.kube', 'config')).toContain('b25l');
  user.clusterStops();
  user.clusterRuns(clusterFile('dHdv'));
  await expect.poll(() => text('.kube', 'config')).toContain('dHdv');
  user.change((next) => {
    next.kubernetes.enabled = false;
  });
  await expect.poll(() => existsSync(inUse)).toBe(false);
  // It may still be visible for a moment.
  user.clusterRuns(clusterFile('dHdv'));
  await user.close();
  expect(existsSync(inUse)).toBe(false);
  expect(user.lines.filter(({ level }) => level === 'warn')).toEqual([]);
});

test('another engine removes the context, and the shell files are not checked again', async () => {
  const user = integration();
  user.mobyRuns('unix:///one.sock');
  await expect.poll(() => states(user, 'docker-context')).toEqual(['managed', 'managed']);
  const path = states(user, 'path');
  writeFileSync(join(home, '.bashrc'), '# by hand\n');
  user.change((next) => {
    next.containerEngine.name = 'containerd';
  });
  await expect.poll(() => existsSync(join(home, '.docker'))).toBe(false);
  expect([text('.bashrc'), states(user, 'path')]).toEqual(['# by hand\n', path]);
  // moby may still be visible for a moment.
  user.mobyRuns('unix:///one.sock');
  await user.close();
  expect(existsSync(join(home, '.docker'))).toBe(false);
});

test('the context is restored when the engine stops for good, not when it restarts', async () => {
  const user = integration();
  const config = join(home, '.docker', 'config.json');
  user.mobyRuns('unix:///one.sock');
  await expect.poll(() => states(user, 'docker-context')).toEqual(['managed', 'managed']);
  const selected = statSync(config, { bigint: true }).ino;
  user.mobyStops('started');
  user.mobyRuns('unix:///one.sock');
  user.change((next) => {
    next.virtualMachine.memoryInGB += 1;
  });
  expect(statSync(config, { bigint: true }).ino).toBe(selected);
  user.mobyStops('stopped');
  await expect.poll(() => states(user, 'docker-context')).toEqual(['managed', 'clean']);
  expect(existsSync(config)).toBe(false);
  user.mobyRuns('unix:///one.sock');
  await expect.poll(() => existsSync(config)).toBe(true);
  await user.close();
  expect(existsSync(config)).toBe(true);
});

test('the end of the service restores the context, and the next one selects it', async () => {
  const first = integration();
  const config = join(home, '.docker', 'config.json');
  first.mobyRuns('unix:///one.sock');
  await expect.poll(() => states(first, 'docker-context')).toEqual(['managed', 'managed']);
  first.mobyStops('stopped');
  await first.close();
  expect(existsSync(config)).toBe(false);
  const second = integration();
  second.mobyRuns('unix:///one.sock');
  await expect.poll(() => existsSync(config)).toBe(true);
  await second.close();
});

test('a service that starts with the engine off restores what a killed one had selected', async () => {
  const killed = integration();
  const config = join(home, '.docker', 'config.json');
  killed.mobyRuns('unix:///one.sock');
  await expect.poll(() => states(killed, 'docker-context')).toEqual(['managed', 'managed']);
  await killed.close();
  const next = integration({ power: 'stopped' });
  await expect.poll(() => existsSync(config)).toBe(false);
  await next.close();
});

test('an entry created without the setting stays until the setting changes', async () => {
  const entry = join(home, '.config', 'autostart', 'rdctl.desktop');
  mkdirSync(join(home, '.config', 'autostart'), { recursive: true });
  writeFileSync(entry, '[Desktop Entry]\nX-Rdctl-Managed=true\n');
  const user = integration();
  await expect.poll(() => states(user, 'path')).toContain('managed');
  expect(existsSync(entry)).toBe(true);
  user.change((next) => {
    next.application.autoStart = true;
  });
  await expect.poll(() => states(user, 'autostart')).toEqual(['managed']);
  user.change(() => undefined);
  await expect.poll(() => states(user, 'autostart')).toEqual(['clean']);
  expect(existsSync(entry)).toBe(false);
  await user.close();
});

test('a failure is reported with a warning, and the rest is done', async () => {
  writeFileSync(join(home, '.bashrc'), '### MANAGED BY RDCTL START (DO NOT EDIT)\nhalf\n');
  writeFileSync(join(home, '.zshrc'), '');
  const user = integration();
  await expect.poll(() => states(user, 'path')).toEqual(expect.arrayContaining(['failed', 'managed']));
  await user.close();
  expect(user.lines).toContainEqual({ level: 'warn', message: 'host integration' });
});

test('after the end nothing is followed; then everything can be undone', async () => {
  const user = integration();
  await expect.poll(() => text('.bashrc')).toContain('MANAGED');
  await user.close();
  user.mobyRuns('unix:///one.sock');
  user.change((next) => {
    next.application.autoStart = true;
  });
  await user.close();
  expect(existsSync(join(home, '.config', 'autostart')) || existsSync(join(home, '.docker'))).toBe(false);
  expect((await user.undo()).every(({ state }) => state === 'clean')).toBe(true);
  expect(text('.bashrc')).toBe('# mine\n');
});

test.each([
  ['with RDCTL_HOME', { places: places({ RDCTL_HOME: '/somewhere' }, 'linux', '') }],
  ['with the simulated driver', { driver: { simulated: true } }],
  ['inside of another program', { self: [] }],
])('%s nothing is changed', async (_, changes) => {
  const user = integration(changes);
  user.mobyRuns('unix:///one.sock');
  await user.close();
  expect(user.offBecause).toMatch(/./);
  expect([user.integrationOutcomes(), await user.undo(), text('.bashrc')]).toEqual([[], [], '# mine\n']);
});

/** A shell file that cannot be changed, until `mend`. */
function unchangeable(): { mend(): void } {
  const outside = join(temporaryDirectory(), 'bashrc');
  writeFileSync(outside, '# elsewhere\n');
  rmSync(join(home, '.bashrc'));
  symlinkSync(outside, join(home, '.bashrc'));
  return {
    mend() {
      rmSync(join(home, '.bashrc'));
      writeFileSync(join(home, '.bashrc'), '# mine\n');
    },
  };
}

test('the report speaks for a generation only once the files have followed it', async () => {
  const user = integration();
  const reports: (number | undefined)[] = [];
  user.onReport(() => reports.push(user.report().observedGeneration));
  user.converges(3, 'unix:///one.sock');
  expect(user.report().observedGeneration).toBe(0);
  await expect.poll(() => user.report().observedGeneration).toBe(3);
  expect(states(user, 'docker-context')).toEqual(['managed', 'managed']);
  expect(reports.at(-1)).toBe(3);
  // Nothing of them changes with the next one.
  user.converges(4, 'unix:///one.sock');
  expect([user.report().observedGeneration, reports.at(-1)]).toEqual([4, 4]);
  user.change((next) => {
    next.containerEngine.name = 'containerd';
  });
  user.works(5);
  await user.idle();
  expect(user.report().observedGeneration).toBe(4);
  await user.close();
});

test('a file that cannot be changed is named in report and condition, and holds up no generation', async () => {
  const { mend } = unchangeable();
  const user = integration();
  user.converges(3, 'unix:///one.sock');
  await expect.poll(() => user.report().observedGeneration).toBe(3);
  const file = join(home, '.bashrc');
  expect(user.report().files).toContainEqual(expect.objectContaining({ file, state: 'failed' }));
  expect(user.conditions()).toMatchObject([{ type: 'UserFilesReady', status: 'False', concern: 'attention' }]);
  expect(user.conditions()[0]?.message).toContain(file);
  expect((await user.userFiles())?.done).toMatchObject({ path: 'manual' });
  expect(await user.retry()).toBe(true);
  expect(user.conditions()).toHaveLength(1);
  await user.close();
  mend();
});

test.each(['on request', 'when it changes'])('a file that could not be changed is tried again %s', async (when) => {
  const { mend } = unchangeable();
  const user = integration();
  if (when === 'when it changes') user.onFilesChanged(() => undefined);
  user.converges(3, 'unix:///one.sock');
  await expect.poll(() => user.report().observedGeneration).toBe(3);
  mend();
  if (when === 'on request') expect(await user.retry()).toBe(true);
  await expect.poll(() => user.conditions()).toEqual([]);
  expect(text('.bashrc')).toContain('MANAGED BY RDCTL');
  expect(await user.retry()).toBe(false);
  await user.close();
});

test('in a service whose backend stays off, the files follow the settings alone', async () => {
  const user = integration({ idle: true });
  user.works(7);
  await expect.poll(() => user.report().observedGeneration).toBe(7);
  await user.close();
});
