import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { policyPrograms } from '../../profiles/policies/places.ts';
import type { JsonObject } from '../../src/json.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

// One field is locked, and everything that writes settings tries to change it.

const LOCKED = { version: 19, images: { namespace: 'team' } };

function policy(settings: JsonObject): string {
  const path = join(temporaryDirectory(), 'locked.json');
  writeFileSync(path, JSON.stringify(settings));
  return path;
}

async function stage(settings: JsonObject = LOCKED, home?: string) {
  const locked = policy(settings);
  const running = await startService({
    power: 'stopped',
    policies: { locked },
    ...(home === undefined ? {} : { home }),
  });
  const cwd = temporaryDirectory();
  const bare = { version: 19, images: { namespace: 'mine', showAll: false } };
  writeFileSync(join(cwd, 'bare.json'), JSON.stringify(bare));
  return {
    ...running,
    locked,
    cwd,
    tool: (...argv: string[]) => rdctl(argv, { env: running.env, cwd }),
    put: (method: string, path: string, body: JsonObject) =>
      running.client.request({ method, path, body: JSON.stringify(body) }),
    images: async () => (await running.client.settings()).settings.images,
  };
}

const BY_LINE = 'field "images.namespace" is locked';

describe('the API', () => {
  test.each([
    ['PUT', '/v1/settings'],
    ['PUT', '/v0/settings'],
    ['PUT', '/v1/propose_settings'],
  ])('%s %s', async (method, path) => {
    const { put, images } = await stage();
    const before = await images();
    const { status, body } = await put(method, path, { version: 19, images: { namespace: 'mine', showAll: false } });
    expect(status).toBe(400);
    expect(body.toString()).toContain(BY_LINE);
    expect(await images()).toEqual(before);
    // The current value is accepted, and unlocked settings can be changed along with it.
    const same = await put(method, path, { version: 19, images: { namespace: 'team', showAll: false } });
    expect(same.status).toBeLessThan(300);
  });

  test('an older body format does not bypass it', async () => {
    const { put, client } = await stage({ version: 19, application: { debug: false } });
    const { status, body } = await put('PUT', '/v1/settings', { version: 4, debug: true });
    expect(status).toBe(400);
    expect(body.toString()).toContain('field "application.debug" is locked');
    expect((await client.settings()).settings).toMatchObject({ application: { debug: false } });
  });

  test('POST /v2/plan shows it as blocked, with the policy and whom to ask', async () => {
    const { client, locked } = await stage();
    const plan = await client.plan({ settings: { images: { namespace: 'mine' } }, state: 'unmanaged', prune: [] });
    expect(plan.changes).toHaveLength(1);
    expect(plan.changes[0]?.blocked).toEqual({
      by: 'lock',
      message: `"images.namespace" is locked by ${locked}; ask your administrator.`,
    });
  });

  test('POST /v1/extensions/uninstall under a locked map', async () => {
    const installed = { 'example/kept': '1.0' };
    const locked = policy({ version: 19, application: { extensions: { installed } } });
    // Without an engine there are no extensions. Installing needs an image, and is tested where there are some.
    const { client, converged } = await startService({ policies: { locked } });
    await converged();
    const { status, body } = await client.request({
      method: 'POST',
      path: '/v1/extensions/uninstall?id=example/kept',
    });
    expect(status).toBe(400);
    expect(body.toString()).toContain(`"application.extensions.installed" is locked by ${locked}`);
    expect((await client.settings()).settings).toMatchObject({ application: { extensions: { installed } } });
  });
});

describe('the tool', () => {
  test.each([
    ['set', ['set', '--images.namespace=mine'], 1],
    ['start on a running service', ['start', '--images.namespace=mine'], 1],
    ['api', ['api', '-X', 'PUT', '/v1/settings', '-b', '{"version":19,"images":{"namespace":"mine"}}'], 1],
    ['apply', ['apply', '-f', 'bare.json'], 3],
  ])('%s', async (_name, argv, exit) => {
    const { tool, images } = await stage();
    const outcome = await tool(...argv);
    expect(outcome.exit).toBe(exit);
    expect(outcome.out + outcome.err).toMatch(/field "images\.namespace" is locked|is locked by .*locked\.json; ask/);
    expect(await images()).toEqual({ namespace: 'team', showAll: true });
  });

  test('apply --skip-locked applies the rest and names it', async () => {
    const { tool, images } = await stage();
    const { exit, err } = await tool('apply', '-f', 'bare.json', '--skip-locked');
    expect(exit).toBe(0);
    expect(err).toContain('ask your administrator');
    expect(await images()).toEqual({ namespace: 'team', showAll: false });
  });

  test.each([
    ['of serve', ['serve', '--images.namespace=mine']],
    ['of serve, as the compatible tool starts it', ['serve', '--as-application', '--images.namespace', 'mine']],
    ['handed over unseen', ['serve', '--settings=-']],
  ])('launch arguments %s start nothing and save nothing', async (_name, argv) => {
    const home = temporaryDirectory();
    const stdin = JSON.stringify({ images: { namespace: 'mine' } });
    const file = policy(LOCKED);
    const places = [{ format: 'json' as const, defaults: `${file}.none`, locked: file }];
    const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated' };
    const outcome = await rdctl(argv, { env, stdin, policies: { places, programs: policyPrograms() } });
    expect(outcome).toMatchObject({ exit: 1, out: '' });
    expect(outcome.err).toContain(BY_LINE);
    expect(existsSync(join(home, 'config', 'settings.json'))).toBe(false);
  });
});

describe('later restores', () => {
  test('an edited settings file is overridden at the next start', async () => {
    const { service, here, home } = await stage();
    await service.stop('enough');
    writeFileSync(here.settingsFile, JSON.stringify({ version: 19, images: { namespace: 'mine', showAll: false } }));
    expect(await (await stage(LOCKED, home)).images()).toEqual({ namespace: 'team', showAll: false });
  });

  test('a restored snapshot does not bring the old value back', async () => {
    const home = temporaryDirectory();
    const free = await startService({ home, power: 'stopped', settings: { images: { namespace: 'mine' } } });
    const saved = await free.client.request({
      method: 'POST',
      path: '/v1/snapshots',
      body: JSON.stringify({ name: 'before', description: '' }),
    });
    expect(saved.status, saved.body.toString()).toBeLessThan(300);
    await free.service.stop('enough');
    const { client, images } = await stage(LOCKED, home);
    await client.putSettings({ version: 19, images: { showAll: false } });
    const restored = await client.request({ method: 'POST', path: '/v1/snapshot/restore?name=before' });
    expect(restored.status, restored.body.toString()).toBeLessThan(300);
    expect(await images()).toEqual({ namespace: 'team', showAll: true });
  });
});
