import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/plan/change.ts';
import { rdctl } from '../helpers/cli.ts';
import { type ForeignAppOptions, foreignApp } from '../helpers/foreign-app.ts';
import { FOREIGN_VERSIONS, type ForeignVersion } from '../helpers/foreign-shapes.ts';
import { rounds } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NAMED = ['--target', 'rancher-desktop'];

async function stage(options: ForeignAppOptions) {
  const app = await foreignApp(options);
  const cwd = temporaryDirectory();
  const { env } = app;
  return {
    app,
    cwd,
    file: (name: string, content: unknown) =>
      writeFileSync(join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content)),
    run: (...argv: string[]) => rdctl(argv, { env, cwd }),
    apply: (...argv: string[]) => rdctl(['apply', ...NAMED, ...argv], { env, cwd }),
    async plan(...argv: string[]): Promise<Plan> {
      const { out, err } = await rdctl(['plan', '-o', 'json', ...argv], { env, cwd });
      if (out === '') throw new Error(err);
      return JSON.parse(out);
    },
  };
}

const profile = (settings: object, rest: object = {}) => ({
  apiVersion: 'rdctl/v1',
  kind: 'Profile',
  settings: { version: 19, ...settings },
  state: 'unmanaged',
  ...rest,
});

/** Where each version has the mount type. */
const MOUNT: Record<ForeignVersion, string> = {
  10: 'experimental.virtualMachine.mount.type',
  14: 'experimental.virtualMachine.mount.type',
  16: 'virtualMachine.mount.type',
  18: 'virtualMachine.mount.type',
  19: 'virtualMachine.mount.type',
  25: 'virtualMachine.mount.type',
};

describe.each(FOREIGN_VERSIONS.map((version) => [version] as const))('settings version %i', (version) => {
  test('a profile written by init changes nothing', async () => {
    const { app, run, apply } = await stage({
      version,
      settings: { 'containerEngine.name': 'containerd', 'kubernetes.port': 7443 },
    });
    const before = structuredClone(app.settings);
    expect((await run('init', '--out-file', 'p.yaml')).exit).toBe(0);
    expect((await run('plan', '-f', 'p.yaml', '--detailed-exitcode')).exit).toBe(0);
    expect((await run('diff', '-f', 'p.yaml')).exit).toBe(0);
    const { exit, out } = await apply('-f', 'p.yaml');
    expect({ exit, out }).toEqual({ exit: 0, out: 'Nothing to change.\n' });
    expect(app.writes()).toEqual([]);
    expect(app.settings).toEqual(before);
  });

  test('its printed settings can be applied to it', async () => {
    const { app, run, file, apply } = await stage({ version });
    const { out } = await run('list-settings');
    expect(JSON.parse(out)).toEqual(app.settings);
    if (version > 19) return;
    file('live.json', out);
    expect(await apply('-f', 'live.json')).toMatchObject({ exit: 0, out: 'Nothing to change.\n' });
    expect(app.writes()).toEqual([]);
  });

  test('a change is sent in its format, restarts once, and is nothing the second time', async () => {
    const { app, file, apply, plan } = await stage({ version });
    const unknown = structuredClone([app.get('quantum') ?? null, app.get('application.accentColour') ?? null]);
    file(
      'p.json',
      profile({
        containerEngine: { name: 'containerd' },
        virtualMachine: { mount: { type: '9p' } },
        images: { showAll: false },
      }),
    );
    const planned = await plan('-f', 'p.json');
    expect(planned).toMatchObject({
      basis: 'service',
      target: { product: 'Rancher Desktop', settingsVersion: version },
    });
    expect(planned.changes.map(({ path, severity }) => `${path} ${severity}`)).toEqual([
      'containerEngine.name restart',
      'virtualMachine.mount.type restart',
      'images.showAll none',
    ]);
    expect(planned.summary).toMatchObject({ restarts: 1, resets: 0, blocked: 0 });
    const first = await apply('-f', 'p.json');
    expect(first).toMatchObject({ exit: 0 });
    expect(first.err).toMatch(
      /^Target: Rancher Desktop \(version unknown, settings version \d+\) at .*rd-engine\.json\n/m,
    );
    expect(app.writes()).toEqual(['PUT /v1/settings']);
    const [sent = {}] = app.bodies();
    expect(sent.version).toBe(version);
    expect(app.get(MOUNT[version])).toBe('9p');
    expect(app.get('containerEngine.name')).toBe('containerd');
    // The plan was right: it announced one restart, and there was one, which is over.
    expect(app.starts).toBe(1);
    expect(app.state).toBe('STARTED');
    expect([app.get('quantum') ?? null, app.get('application.accentColour') ?? null]).toEqual(unknown);
    expect(await apply('-f', 'p.json')).toMatchObject({ exit: 0, out: 'Nothing to change.\n' });
    expect(app.writes()).toHaveLength(1);
  });

  test('a free change restarts nothing', async () => {
    const { app, file, apply, plan } = await stage({ version });
    file('p.json', profile({ images: { namespace: 'team' }, diagnostics: { mutedChecks: { ONE: true } } }));
    expect((await plan('-f', 'p.json')).summary).toMatchObject({ changes: 2, severity: 'none', restarts: 0 });
    expect((await apply('-f', 'p.json')).exit).toBe(0);
    expect(app.starts).toBe(0);
    expect(app.get('diagnostics.mutedChecks')).toEqual({ ONE: true });
    file('p.json', profile({ diagnostics: { mutedChecks: { ONE: null } } }));
    expect((await apply('-f', 'p.json')).exit).toBe(0);
    expect(app.get('diagnostics.mutedChecks')).toEqual({});
  });

  test('a lower cluster version requires consent', async () => {
    const { app, file, apply, plan } = await stage({ version });
    file('p.json', profile({ kubernetes: { version: '1.29.10' } }));
    expect((await plan('-f', 'p.json')).summary).toMatchObject({ severity: 'reset', resets: 1, nothingLost: false });
    expect((await apply('-f', 'p.json')).exit).toBe(5);
    expect(app.writes()).toEqual([]);
    expect((await apply('-f', 'p.json', '--allow-reset')).exit).toBe(0);
    expect(app.get('kubernetes.version')).toBe('1.29.10');
  });

  test('stop and start', async () => {
    const { app, file, apply } = await stage({ version });
    file('off.json', profile({ images: { namespace: 'team' } }, { state: 'stopped' }));
    file('on.json', profile({}, { state: 'started' }));
    expect((await apply('-f', 'off.json')).exit).toBe(0);
    expect(app.state).toBe('STOPPED');
    expect((await apply('-f', 'off.json')).out).toBe('Nothing to change.\n');
    expect((await apply('-f', 'on.json')).exit).toBe(0);
    expect(app.state).toBe('STARTED');
    expect(app.writes()).toEqual(['PUT /v1/settings', 'PUT /v1/backend_state', 'PUT /v1/backend_state']);
  });

  test('stopping together with settings that restart ends stopped', async () => {
    const { app, file, apply } = await stage({ version });
    file('p.json', profile({ containerEngine: { name: 'containerd' } }, { state: 'stopped' }));
    expect((await apply('-f', 'p.json')).exit).toBe(0);
    expect(app.state).toBe('STOPPED');
    expect(app.get('containerEngine.name')).toBe('containerd');
    expect((await apply('-f', 'p.json')).out).toBe('Nothing to change.\n');
  });

  test('set and start change what they name', async () => {
    const { app, run } = await stage({ version });
    const before = structuredClone(app.settings);
    expect(await run('set', '--virtual-machine.mount.type=9p')).toMatchObject({
      exit: 0,
      out: 'Status: reconfiguring Rancher Desktop to apply changes (this may take a while).\n',
    });
    expect(app.get(MOUNT[version])).toBe('9p');
    const started = await run('start', '--kubernetes.port=7000');
    expect(started.out).toMatch(/^Status: UI is currently busy, but will eventually be reconfigured/);
    expect(app.get('kubernetes.port')).toBe(7000);
    expect(app.bodies().map((body) => body.version)).toEqual([version, version]);
    app.set(MOUNT[version], 'reverse-sshfs');
    app.set('kubernetes.port', 6443);
    expect(app.settings).toEqual(before);
  });

  test('locked fields are named, and the rest is applied on request', async () => {
    const { app, file, apply, plan } = await stage({ version, locked: { version: true, kubernetes: { port: true } } });
    file('p.json', profile({ kubernetes: { port: 7000 }, images: { showAll: false } }));
    const [port] = (await plan('-f', 'p.json')).changes;
    expect(port?.blocked).toMatchObject({ by: 'lock' });
    expect((await apply('-f', 'p.json')).exit).toBe(3);
    expect(app.writes()).toEqual([]);
    expect((await apply('-f', 'p.json', '--skip-locked')).exit).toBe(0);
    expect(app.get('images.showAll')).toBe(false);
    expect(app.get('kubernetes.port')).toBe(6443);
  });

  test('values it would refuse are reported with their position before anything is sent', async () => {
    const { app, file, apply } = await stage({ version });
    file('p.json', profile({ kubernetes: { version: '1.2.3' } }));
    const { exit, err } = await apply('-f', 'p.json');
    expect(exit).toBe(3);
    expect(err).toContain('Kubernetes version "1.2.3" not found.');
    expect(app.writes()).toEqual([]);
  });

  test('settings of other platforms are blocked', async () => {
    const { file, plan } = await stage({ version });
    file('p.json', { version: 19, WSL: { integrations: { Ubuntu: true } } });
    const document = await plan('-f', 'p.json').catch((error: unknown) => error);
    // On another platform the profile itself is already refused.
    if (document instanceof Error) expect(document.message).toContain('WSL.integrations');
    else expect((document as Plan).changes[0]?.blocked?.by).toBe('unsupported');
  });

  test('port forwards are sent once per apply, after it has converged, and never counted as changes', async () => {
    const { app, file, apply, plan } = await stage({ version });
    const portForwards = [
      { namespace: 'default', service: 'web', k8sPort: 80, hostPort: 8080 },
      { namespace: 'default', service: 'old', k8sPort: 1, hostPort: null },
    ];
    app.forwards.set('default/old:1', 9999);
    file('p.json', profile({ containerEngine: { name: 'containerd' } }, { portForwards }));
    const planned = await plan('-f', 'p.json');
    expect(planned.changes.map(({ path }) => path)).toEqual(['containerEngine.name']);
    expect(planned.warnings.join()).toContain('every apply sends them again: default/web:80 → 8080');
    expect((await apply('-f', 'p.json')).exit).toBe(0);
    expect(app.writes()).toEqual([
      'PUT /v1/settings',
      'DELETE /v1/port_forwarding?namespace=default&service=old&k8sPort=1',
      'POST /v1/port_forwarding',
    ]);
    expect(Object.fromEntries(app.forwards)).toEqual({ 'default/web:80': 8080 });
    const again = await apply('-f', 'p.json');
    expect(again).toMatchObject({ exit: 0, out: 'Nothing to change.\n' });
    expect(again.err).toContain('Port forward sent again: default/web:80 → 8080');
  });
});

test.each(FOREIGN_VERSIONS)(
  'version %i: extensions are installed and uninstalled, not written as settings',
  async (version) => {
    const { app, file, apply } = await stage({
      version,
      settings: { 'application.extensions.installed': { 'example/old': '0.9' } },
    });
    app.extensions['example/old'] = '0.9';
    const installed = { 'example/new': '1.0.0', 'example/old': null };
    file('p.json', profile({ application: { extensions: { installed } } }));
    expect((await apply('-f', 'p.json')).exit).toBe(0);
    expect(app.writes()).toEqual([
      'POST /v1/extensions/uninstall?id=example%2Fold',
      'POST /v1/extensions/install?id=example%2Fnew%3A1.0.0',
    ]);
    expect(app.extensions).toEqual({ 'example/new': '1.0.0' });
    expect(await apply('-f', 'p.json')).toMatchObject({ exit: 0, out: 'Nothing to change.\n' });
    expect(app.writes()).toHaveLength(2);
  },
);

const TRUTHS: [object, 'none' | 'live' | 'restart'][] = [
  [{ kubernetes: { port: 7000 } }, 'restart'],
  [{ kubernetes: { options: { traefik: false } } }, 'restart'],
  [{ kubernetes: { enabled: false } }, 'restart'],
  [{ kubernetes: { enabled: false, port: 7000 } }, 'restart'],
  [{ containerEngine: { allowedImages: { enabled: true } } }, 'restart'],
  [{ virtualMachine: { memoryInGB: 6 } }, 'restart'],
  [{ virtualMachine: { mount: { type: '9p' } } }, 'restart'],
  [{ containerEngine: { allowedImages: { patterns: ['a/b'] } } }, 'live'],
  [{ application: { debug: true } }, 'none'],
  [{ images: { namespace: 'x' }, diagnostics: { showMuted: true } }, 'none'],
];

const VERSIONS = [10, 14, 16, 25] as const;
/** Every change with one of the versions, or with all of them. */
const PAIRS = TRUTHS.flatMap((row, index) =>
  VERSIONS.filter((_version, at) => at === index % VERSIONS.length || rounds(0, 1) === 1).map(
    (version) => [version, ...row] as const,
  ),
);

test.each(PAIRS)('version %i: the plan of %j says %s, and that happens', async (version, settings, severity) => {
  const { app, file, apply, plan } = await stage({ version, looksPerState: 1 });
  file('p.json', profile(settings));
  const { summary } = await plan('-f', 'p.json');
  expect(summary).toMatchObject({ severity, restarts: severity === 'restart' ? 1 : 0, blocked: 0 });
  expect((await apply('-f', 'p.json')).exit).toBe(0);
  expect(app.starts).toBe(summary.restarts);
  expect(app.writes()).toEqual(['PUT /v1/settings']);
  expect((await apply('-f', 'p.json')).out).toBe('Nothing to change.\n');
});

test('apply --previous rolls back', async () => {
  const { app, file, apply, run } = await stage({ version: 14, looksPerState: 1 });
  const before = structuredClone(app.settings);
  file('p.json', profile({ containerEngine: { name: 'containerd' }, diagnostics: { mutedChecks: { ONE: true } } }));
  expect((await apply('-f', 'p.json')).exit).toBe(0);
  expect(app.settings).not.toEqual(before);
  const back = await apply('--previous');
  expect(back.exit).toBe(0);
  // They cannot be read there, so rolling back says that it leaves them alone.
  expect(back.err).toContain('warning: The previous port forwards were not recorded, so they are left unchanged.\n');
  expect(app.settings).toEqual(before);
  const { exit, err } = await run('rollback');
  expect(exit).toBe(3);
  expect(err).toContain('Undo its last apply with: rdctl apply --previous');
});

const NEWER: [ForeignVersion, object, string][] = [
  [
    10,
    { containerEngine: { mobyStorageDriver: 'classic' } },
    '"containerEngine.mobyStorageDriver" needs settings version 17 (Rancher Desktop 1.22); the application has version 10.',
  ],
  [
    10,
    { experimental: { containerEngine: { webAssembly: { enabled: true } } } },
    'needs settings version 11 (Rancher Desktop 1.13)',
  ],
  [
    10,
    { containers: { namespace: 'team' } },
    'This Rancher Desktop (settings version 10) has no setting "containers.namespace".',
  ],
  [
    14,
    { experimental: { virtualMachine: { diskSize: '200GiB' } } },
    'needs settings version 16 (Rancher Desktop 1.20)',
  ],
  [16, { application: { theme: 'dark' } }, 'needs settings version 18 (Rancher Desktop 1.23)'],
  [18, { application: { locale: 'de' } }, 'needs settings version 19 (Rancher Desktop 1.24)'],
];

test.each(NEWER)('version %i refuses newer settings by name: %j', async (version, settings, text) => {
  const { app, file, apply, run } = await stage({ version });
  file('p.json', profile({ ...settings, images: { showAll: false } }));
  const planned = await run('plan', '-f', 'p.json');
  expect(planned.exit).toBe(3);
  expect(planned.out).toContain(text);
  const { exit, err } = await apply('-f', 'p.json');
  expect(exit).toBe(3);
  expect(err).toContain(text);
  expect(app.writes()).toEqual([]);
});

test('a newer setting at its default requires nothing', async () => {
  const { app, file, apply } = await stage({ version: 10 });
  file('p.json', profile({ containerEngine: { mobyStorageDriver: 'auto' }, application: { theme: 'system' } }));
  expect((await apply('-f', 'p.json')).out).toBe('Nothing to change.\n');
  expect(app.writes()).toEqual([]);
});

test('a newer application causes a warning, and only given settings are sent', async () => {
  const { app, file, apply, run } = await stage({ version: 25 });
  file('p.json', profile({ images: { showAll: false } }));
  expect((await run('plan', '-f', 'p.json')).out).toContain(
    'warning: Rancher Desktop has settings version 25; rdctl supports 19',
  );
  expect((await apply('-f', 'p.json')).exit).toBe(0);
  expect(app.bodies()).toEqual([{ version: 25, images: { showAll: false } }]);
  app.settings.images = { namespace: 'default' };
  expect((await run('plan', '-f', 'p.json')).out).toContain('has no setting "images.showAll"');
});

describe('safety', () => {
  test('a discovered application can be read and set; apply has to name it', async () => {
    const { app, run, file, cwd } = await stage({ version: 18 });
    file('p.json', profile({ images: { showAll: false } }));
    expect((await run('status')).out).toContain('Application  Rancher Desktop (version unknown, settings version 18)');
    expect((await run('plan', '-f', 'p.json')).exit).toBe(0);
    const refused = await run('apply', '-f', 'p.json');
    expect(refused.exit).toBe(3);
    expect(refused.err).toContain('the running application is Rancher Desktop, found through ');
    expect(refused.err).toContain('--target rancher-desktop');
    expect((await run('shutdown')).exit).toBe(3);
    expect(app.writes()).toEqual([]);
    expect((await run('set', '--images.show-all=false')).exit).toBe(0);
    file('p.json', profile({ images: { showAll: true } }));
    for (const named of [
      { argv: [], env: { ...app.env, RDCTL_CONFIG_PATH: app.file } },
      { argv: ['--config-path', app.file], env: {} },
    ]) {
      app.set('images.showAll', false);
      const { exit } = await rdctl(['apply', '-f', 'p.json', ...named.argv], {
        env: { ...app.env, ...named.env },
        cwd,
      });
      expect(exit).toBe(0);
      expect(app.get('images.showAll')).toBe(true);
    }
    expect((await run('shutdown', '--wait=false', ...NAMED)).out).toBe('Shutting down.\n');
  });

  test('a program that does not implement the interface is not an application', async () => {
    const { run, file } = await stage({
      version: 18,
      intercept: () => ({ status: 200, body: '{"version":19,"name":"my package"}' }),
    });
    file('p.json', profile({}));
    for (const argv of [['list-settings'], ['set', '--images.show-all=false'], ['plan', '-f', 'p.json']]) {
      const { exit, err } = await run(...argv);
      expect(exit).toBe(1);
      expect(err).toContain('another program answers');
    }
  });
});

describe('concurrent changes', () => {
  test('before the write: the apply plans again', async () => {
    let edits = 0;
    const { app, file, apply } = await stage({
      version: 18,
      intercept({ method, path }, it) {
        // Someone else makes a change between the plan and the write.
        if (method === 'PUT' && path === '/v1/propose_settings' && edits === 0) {
          edits += 1;
          it.set('kubernetes.port', 7777);
        }
        return undefined;
      },
    });
    file('p.json', profile({ images: { showAll: false } }));
    const { exit, err } = await apply('-f', 'p.json');
    expect(exit).toBe(0);
    expect(err).toContain('The settings changed in the meantime; planning again.');
    expect(app.get('kubernetes.port')).toBe(7777);
    expect(app.bodies()).toEqual([{ version: 18, images: { showAll: false } }]);
  });

  test('right after the write: the apply does not report success', async () => {
    let written = false;
    const { file, apply } = await stage({
      version: 18,
      intercept({ method, path }, it) {
        if (method === 'GET' && path === '/v1/settings' && written) it.set('images.showAll', true);
        if (method === 'PUT' && path === '/v1/settings') written = true;
        return undefined;
      },
    });
    file('p.json', profile({ images: { showAll: false } }));
    const { exit, err } = await apply('-f', 'p.json');
    expect(exit).toBe(1);
    expect(err).toContain('did not store them as sent');
    expect(err).toContain('images.showAll');
  });

  test('a saved plan belongs to that application, and only until something changes', async () => {
    const { app, run, file, apply, cwd } = await stage({ version: 16 });
    file('p.json', profile({ images: { showAll: false } }));
    expect((await run('plan', '-f', 'p.json', '--out-file', 'plan.json')).exit).toBe(0);
    app.set('images.namespace', 'unmanaged');
    app.set('images.showAll', false);
    expect((await apply('plan.json')).exit).toBe(6);
    app.set('images.showAll', true);
    app.set('version', 18);
    expect((await apply('plan.json')).err).toContain('the application is a different release');
    app.set('version', 16);
    expect((await apply('plan.json')).exit).toBe(0);
    expect(app.get('images.showAll')).toBe(false);
    const other = await stage({ version: 16 });
    writeFileSync(join(other.cwd, 'plan.json'), readFileSync(join(cwd, 'plan.json')));
    expect((await other.apply('plan.json')).exit).toBe(3);
    expect(other.app.writes()).toEqual([]);
  });
});

describe('its backend', () => {
  test('start --wait returns after the restart', async () => {
    const { app, run } = await stage({ version: 19, looksPerState: 1 });
    expect((await run('start', '--kubernetes.enabled=false', '--wait')).exit).toBe(0);
    expect(app).toMatchObject({ state: 'DISABLED', starts: 1 });
  });

  test('a failed start ends the apply, and the next apply retries', async () => {
    const { app, file, apply } = await stage({ version: 18, startFails: true });
    file('p.json', profile({ containerEngine: { name: 'containerd' } }));
    const { exit, err } = await apply('-f', 'p.json');
    expect(exit).toBe(1);
    expect(err).toContain('Rancher Desktop is in state ERROR');
    const second = await apply('-f', 'p.json');
    expect(second.exit).toBe(0);
    expect(second.err).toContain('the backend failed; retrying');
    expect(app.state).toBe('STARTED');
  });

  test('settings sent while it is busy are used by the next restart', async () => {
    const { app, file, apply } = await stage({ version: 18, state: 'STOPPED' });
    file('on.json', profile({ containerEngine: { name: 'containerd' } }, { state: 'started' }));
    expect((await apply('-f', 'on.json')).exit).toBe(0);
    expect(app.state).toBe('STARTED');
    expect(app.get('containerEngine.name')).toBe('containerd');
  });

  test('a timeout reports what is missing', async () => {
    const { file, apply } = await stage({ version: 18, looksPerState: 10_000 });
    file('p.json', profile({ containerEngine: { name: 'containerd' } }));
    const { exit, err } = await apply('-f', 'p.json', '--timeout', '5s');
    expect(exit).toBe(4);
    expect(err).toContain('it has not restarted yet to apply the accepted settings');
  });

  test('unknown costs are estimated and marked', async () => {
    const { app, file, apply, run } = await stage({
      version: 18,
      intercept: ({ path }) => (path === '/v1/propose_settings' ? { status: 500, body: 'internal error' } : undefined),
    });
    file('p.json', profile({ containerEngine: { name: 'containerd' } }));
    const { out } = await run('plan', '-f', 'p.json');
    expect(out).toContain('Basis:  estimated, not reported by the application');
    expect(out).toContain('restart');
    expect((await apply('-f', 'p.json')).exit).toBe(0);
    expect(app).toMatchObject({ state: 'STARTED', starts: 1 });
  });

  test('one that never started accepts everything without a restart', async () => {
    const { app, file, apply, plan } = await stage({ version: 18, state: 'STOPPED', neverStarted: true });
    file('p.json', profile({ containerEngine: { name: 'containerd' } }));
    expect((await plan('-f', 'p.json')).summary).toMatchObject({ severity: 'none', restarts: 0 });
    expect((await apply('-f', 'p.json')).exit).toBe(0);
    expect(app).toMatchObject({ state: 'STOPPED', starts: 0 });
  });
});
