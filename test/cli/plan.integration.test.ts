import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { schemaCheck } from '../helpers/schema-check.ts';
import { scriptedServer, writeConnection } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const validPlan = schemaCheck('plan');

const CONTAINERD = JSON.stringify({ version: 19, containerEngine: { name: 'containerd' } });

async function stage(text = CONTAINERD) {
  const running = await startService();
  await running.converged();
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'p.json'), text);
  return { ...running, cwd, rdctl: (...argv: string[]) => rdctl(argv, { env: running.env, cwd }) };
}

describe('plan', () => {
  test('prints target, driver, changes, cost and total, and changes nothing', async () => {
    const { rdctl, client, home } = await stage();
    const { generation } = await client.status();
    const { exit, out } = await rdctl('plan', '-f', 'p.json');
    expect(exit).toBe(0);
    expect(out.split('\n').slice(0, 2)).toEqual([
      `Target: rdctl at ${home}`,
      'Driver: simulated (SIMULATED: no real machine or engine)',
    ]);
    expect(out).toContain('  ± containerEngine.name: moby → containerd\n      restart: ');
    expect(out).toMatch(/\n1 change, 1 restart, .*\n$/);
    expect(await client.status()).toMatchObject({ generation, counters: { settingsPuts: 0 } });
  });

  test('-o json prints the published document', async () => {
    const { rdctl } = await stage();
    const { out } = await rdctl('plan', '-f', 'p.json', '-o', 'json');
    const document: unknown = JSON.parse(out);
    expect(validPlan(document)).toBe(true);
    expect(document).toMatchObject({ kind: 'Plan', basis: 'service', summary: { changes: 1, restarts: 1, resets: 0 } });
  });

  test('--detailed-exitcode tells changes from no changes', async () => {
    const { rdctl, cwd } = await stage();
    expect((await rdctl('plan', '-f', 'p.json', '--detailed-exitcode')).exit).toBe(2);
    writeFileSync(join(cwd, 'p.json'), JSON.stringify({ version: 19, containerEngine: { name: 'docker' } }));
    expect((await rdctl('plan', '-f', 'p.json', '--detailed-exitcode')).exit).toBe(0);
  });

  test('the saved file is the published document, and private', async () => {
    const { rdctl, cwd } = await stage();
    expect((await rdctl('plan', '-f', 'p.json', '--out-file', 'plan.json')).exit).toBe(0);
    const document: unknown = JSON.parse(readFileSync(join(cwd, 'plan.json'), 'utf8'));
    expect(validPlan(document)).toBe(true);
    expect(document).toMatchObject({ saved: { files: [join(cwd, 'p.json')] } });
  });

  test('shows what the service refuses, with exit 3', async () => {
    const { rdctl } = await stage(JSON.stringify({ version: 19, kubernetes: { version: '1.2.3' } }));
    const { exit, err } = await rdctl('plan', '-f', 'p.json');
    expect(exit).toBe(3);
    expect(err).toContain('/kubernetes/version');
  });
});

test('warns about a pattern that can match nothing, as every command that reads the profile does', async () => {
  const allowedImages = { patterns: ['foo/b[ao]r', 'busybox'] };
  const { rdctl } = await stage(JSON.stringify({ version: 19, containerEngine: { allowedImages } }));
  const warning = expect.stringContaining(
    'warning: The pattern "foo/b[ao]r" in "containerEngine.allowedImages.patterns" matches nothing: ',
  );
  expect(await rdctl('validate', '-f', 'p.json')).toMatchObject({ exit: 0, err: warning });
  expect(await rdctl('plan', '-f', 'p.json')).toMatchObject({ exit: 0, out: warning });
  expect(await rdctl('apply', '-f', 'p.json')).toMatchObject({ exit: 0, err: warning });
  expect(await rdctl('apply', '-f', 'p.json')).toMatchObject({ out: expect.stringMatching(/^Nothing/), err: warning });
  const { out } = await rdctl('apply', '-f', 'p.json', '-o', 'json');
  expect(JSON.parse(out)).toMatchObject({ outcome: 'unchanged', warnings: [expect.stringContaining('foo/b[ao]r')] });
  expect((await rdctl('validate', '-f', 'p.json')).err.match(/warning/g)).toHaveLength(1);
});

test('for an extension that cannot be installed, the advice is about the list or the state', async () => {
  const installed = { 'simulated/hello': '1.0.0' };
  const extensions = { installed, allowed: { enabled: true, list: ['other/tool'] } };
  const profile = (settings: object, rest: object = {}) =>
    JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', settings: { version: 19, ...settings }, ...rest });
  const { rdctl, cwd } = await stage(profile({ application: { extensions } }));
  const refused = await rdctl('apply', '-f', 'p.json');
  expect(refused).toMatchObject({
    exit: 3,
    err: expect.stringContaining('Permit it in "application.extensions.allowed.list"'),
  });
  expect(refused.err).not.toContain('driver that supports');
  writeFileSync(join(cwd, 'p.json'), profile({ application: { extensions: { installed } } }, { state: 'stopped' }));
  const stopped = await rdctl('apply', '-f', 'p.json');
  expect(stopped).toMatchObject({ exit: 3, err: expect.stringContaining('`state: started`') });
  expect(stopped.err).not.toContain('driver that supports');
});

describe('with no service running', () => {
  test('is estimated from the defaults, and says so', async () => {
    const env = { RDCTL_HOME: temporaryDirectory() };
    const { exit, out } = await rdctl(['plan', '-f', 'examples/containerd.yaml'], { env });
    expect(exit).toBe(0);
    expect(out).toMatch(/estimated, no running service/);
    expect(out).toContain('compared with the defaults');
    expect(out).toContain('containerEngine.name: moby → containerd');
    expect(out).not.toContain('nothing is lost');
  });

  test('is estimated from the stored settings after a first run', async () => {
    const { rdctl, client, service } = await stage();
    await client.putSettings({ version: 19, containerEngine: { name: 'containerd' } });
    await service.stop('test');
    const { out } = await rdctl('plan', '-f', 'p.json');
    expect(out).toContain('compared with the stored settings');
    expect(out).toContain('Driver: simulated');
    expect(out).toMatch(/\nNothing to change\.\n$/);
  });

  test('ignores a stale connection file', async () => {
    await using server = await scriptedServer(() => undefined);
    await server.close();
    const { exit, out } = await rdctl(['plan', '-f', 'examples/moby.yaml'], { env: server.env });
    expect({ exit, estimated: out.includes('estimated') }).toEqual({ exit: 0, estimated: true });
  });

  test('requires a service that was named explicitly', async () => {
    await using server = await scriptedServer(() => undefined);
    await server.close();
    const argv = ['--port', String(server.port), 'plan', '-f', 'examples/moby.yaml'];
    expect((await rdctl(argv, { env: server.env })).exit).toBe(1);
  });

  test('cannot be saved', async () => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'p.json'), CONTAINERD);
    const argv = ['plan', '-f', 'p.json', '--out-file', 'plan.json'];
    const { exit, err } = await rdctl(argv, { cwd, env: { RDCTL_HOME: temporaryDirectory() } });
    expect(exit).toBe(1);
    expect(err).toContain('requires a running service');
    expect(existsSync(join(cwd, 'plan.json'))).toBe(false);
  });

  test('status exits 1 and says what to do', async () => {
    const { exit, out, err } = await rdctl(['status'], { env: { RDCTL_HOME: temporaryDirectory() } });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain('rdctl start');
  });
});

describe('diff', () => {
  test('exits 2 with differences and 0 without', async () => {
    const { rdctl, client, converged } = await stage();
    const before = await rdctl('diff', '-f', 'p.json');
    expect(before.exit).toBe(2);
    expect(before.out).toContain('live → profile\n  containerEngine.name: moby → containerd\n');
    expect(before.out).not.toMatch(/restart/);
    const { generation } = await client.putSettings(JSON.parse(CONTAINERD));
    await converged(generation);
    expect(await rdctl('diff', '-f', 'p.json')).toMatchObject({
      exit: 0,
      out: expect.stringContaining('No differences.'),
    });
  });

  test('-o json lists the differences', async () => {
    const { rdctl } = await stage();
    expect(JSON.parse((await rdctl('diff', '-f', 'p.json', '-o', 'json')).out)).toMatchObject({
      kind: 'Diff',
      formatVersion: 1,
      differences: [{ path: 'containerEngine.name', live: 'moby', profile: 'containerd' }],
    });
  });
});

describe('status', () => {
  test('prints target, driver and conditions; exit 0 when converged', async () => {
    const { rdctl, home } = await stage();
    const { exit, out } = await rdctl('status');
    expect(exit).toBe(0);
    expect(out).toContain(home);
    expect(out).toMatch(/^Driver +simulated \(SIMULATED/m);
    expect(out).toMatch(/^State +STARTED, converged/m);
    expect(out).toMatch(/^Endpoint +simulated:moby/m);
  });

  test('-o json is what the API returns', async () => {
    const { rdctl, client } = await stage();
    const { out } = await rdctl('status', '-o', 'json');
    const { counters: _theirs, ...document } = JSON.parse(out);
    const { counters: _ours, ...status } = await client.status();
    expect(document).toEqual(JSON.parse(JSON.stringify(status)));
  });

  test('exits 1 when the backend gave up', async () => {
    const running = await startService({ env: { RDCTL_SIMULATED_FAULTS: 'moby.start:terminal' } });
    await running.converged().catch(() => undefined);
    const { exit, out } = await rdctl(['status'], { env: running.env });
    expect(exit).toBe(1);
    expect(out).toMatch(/^State +ERROR, not converged/m);
    expect(out).toMatch(/^! EngineReady: /m);
  });
});

describe('init', () => {
  test('writes a profile that applies without a write', async () => {
    const { rdctl: at, client, converged } = await stage();
    const change = {
      version: 19,
      images: { showAll: false },
      diagnostics: { mutedChecks: { 'A: b': true } },
      kubernetes: { enabled: false },
    };
    const { generation } = await client.putSettings(change);
    await converged(generation);
    for (const all of [[], ['--all']]) {
      const { exit, out } = await at('init', ...all);
      expect(exit).toBe(0);
      expect(out).toMatch(/^# yaml-language-server: \$schema=\S*schemas\/profile\.json\n/);
      expect(out).toContain('showAll: false');
      const { cwd, env } = { cwd: temporaryDirectory(), env: { RDCTL_HOME: (await client.status()).home } };
      writeFileSync(join(cwd, 'i.yaml'), out);
      expect(await rdctl(['plan', '-f', 'i.yaml', '--detailed-exitcode'], { cwd, env })).toMatchObject({ exit: 0 });
    }
  });

  test('reads another application', async () => {
    const settings = { version: 16, containerEngine: { name: 'containerd' }, kubernetes: { enabled: false } };
    await using server = await scriptedServer(({ path }) => {
      if (path === '/v2/status') return { status: 404, body: 'Unknown command: GET /v2/status' };
      return { body: path === '/v1/settings' ? JSON.stringify(settings) : '{"vmState":"STOPPED","locked":false}' };
    });
    const data = temporaryDirectory();
    writeConnection(join(data, 'rancher-desktop', 'rd-engine.json'), { user: 'u', password: 'p', port: server.port });
    const env = { XDG_DATA_HOME: data, XDG_STATE_HOME: data, XDG_CONFIG_HOME: data };
    const { exit, out } = await rdctl(['init'], { env });
    expect(exit).toBe(0);
    expect(out).toContain('name: containerd');
    expect(out).toMatch(/\nstate: stopped\n$/);
    expect(new Set(server.received.map(({ method }) => method))).toEqual(new Set(['GET']));
  });

  test('omits a secret and shows how to manage it', async () => {
    const { rdctl } = await stage();
    const { out } = await rdctl('init', '--all');
    expect(out).toContain('# password: { fromEnv: PROXY_PASSWORD }');
    expect(out).not.toMatch(/^ +password:/m);
  });

  test('does not overwrite a file without --force', async () => {
    const { rdctl, cwd } = await stage();
    const refused = await rdctl('init', '--out-file', 'p.json');
    expect(refused.exit).toBe(1);
    expect(readFileSync(join(cwd, 'p.json'), 'utf8')).toBe(CONTAINERD);
    expect((await rdctl('init', '--out-file', 'p.json', '--force')).exit).toBe(0);
    expect(readFileSync(join(cwd, 'p.json'), 'utf8')).toMatch(/^# yaml-language-server/);
  });

  test('works with nothing running', async () => {
    const { exit, out } = await rdctl(['init', '--schema', 'https://example.com/s.json'], {
      env: { RDCTL_HOME: temporaryDirectory() },
    });
    expect(exit).toBe(0);
    expect(out).toMatch(
      /^# yaml-language-server: \$schema=https:\/\/example\.com\/s\.json\n# Written by `rdctl init` from the defaults/,
    );
  });
});
