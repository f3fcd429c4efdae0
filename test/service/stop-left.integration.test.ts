import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { homeService } from '../../src/client/home-service.ts';
import type { Model } from '../../src/drivers/machines/simulated/model.ts';
import { stopLeft } from '../../src/service/stop-left.ts';
import { lockHome } from '../../src/state/home-lock.ts';
import { type Places, places } from '../../src/state/places.ts';
import { writeConnection } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const { signal } = new AbortController();
/** No process has it. */
const NOBODY = 2 ** 30;
const GARBAGE = '{"version":19,"kubernetes":7}';

const modelOf = (here: Places): Model =>
  JSON.parse(readFileSync(join(here.state, 'drivers', 'simulated', 'machine.json'), 'utf8'));

/** A home as a killed service leaves it: the model says that everything runs, and settings and profile have errors since then. */
async function leftHome(): Promise<{ here: Places; env: Record<string, string> }> {
  const home = temporaryDirectory();
  const { service, here, env, converged } = await startService({ home });
  await converged();
  const running = modelOf(here);
  await service.stop('to be left');
  writeFileSync(join(here.state, 'drivers', 'simulated', 'machine.json'), JSON.stringify(running));
  const entry = { pid: NOBODY, started: 'x', since: new Date().toISOString(), held: true };
  writeFileSync(join(here.serviceLock, 'x.json'), JSON.stringify(entry));
  writeConnection(here.connectionFile, { user: 'user', password: 'x', port: 6107, pid: NOBODY });
  writeFileSync(here.settingsFile, GARBAGE);
  const config = join(home, 'xdg');
  mkdirSync(config);
  writeFileSync(join(config, 'rancher-desktop.locked.json'), GARBAGE);
  expect(modelOf(here).machine).toMatchObject({ state: 'on' });
  return { here, env: { ...env, XDG_CONFIG_HOME: config } };
}

test('stops leftovers, regardless of settings and profiles, and changes neither', async () => {
  const { here, env } = await leftHome();
  const state = readFileSync(here.stateFile, 'utf8');
  // Another driver than the recorded one is requested: what runs does not belong to that one.
  await stopLeft({ env: { ...env, RDCTL_DRIVER: 'host' }, platform: 'linux', signal });
  expect(modelOf(here).machine).not.toMatchObject({ state: 'on' });
  expect(readFileSync(here.settingsFile, 'utf8')).toBe(GARBAGE);
  expect(readFileSync(here.stateFile, 'utf8')).toBe(state);
  expect(existsSync(here.connectionFile)).toBe(false);
  expect(await homeService(here)).toEqual({ kind: 'none' });
});

test('what cannot be stopped is found by the next one', async () => {
  const { here, env } = await leftHome();
  const options = { platform: 'linux', signal } as const;
  const faults = { RDCTL_SIMULATED_FAULTS: 'moby.stop:terminal' };
  await expect(stopLeft({ ...options, env: { ...env, ...faults } })).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringMatching(/^programs left by the previous service do not stop: /),
  });
  expect(await homeService(here)).toMatchObject({ kind: 'left', pid: process.pid });
  await stopLeft({ ...options, env });
  expect(await homeService(here)).toEqual({ kind: 'none' });
});

test('a running service is left alone, and so is the connection file of another process', async () => {
  const { here, env } = await leftHome();
  const lock = await lockHome(here.serviceLock, here.data);
  await expect(stopLeft({ env, platform: 'linux', signal })).rejects.toMatchObject({ code: 'ERR_ALREADY_RUNNING' });
  expect(modelOf(here).machine).toMatchObject({ state: 'on' });
  await lock.release();
  writeConnection(here.connectionFile, { user: 'user', password: 'x', port: 6107, pid: process.pid });
  await stopLeft({ env, platform: 'linux', signal });
  expect(existsSync(here.connectionFile)).toBe(true);
});

test('an unused directory stays unchanged', async () => {
  const env = { RDCTL_HOME: temporaryDirectory() };
  await stopLeft({ env, platform: 'linux', signal });
  expect(existsSync(places(env, 'linux', '').stateFile)).toBe(false);
});
