import { describe, expect, test } from 'vitest';
import { containerdEngine, runningTasks } from '../../src/drivers/engines/containerd.ts';
import { containerdConfig, containerdPlaces } from '../../src/drivers/engines/containerd-daemon.ts';
import { mobyEngine } from '../../src/drivers/engines/moby.ts';
import { countsIn, parseReturns, parseVersion, runningIn } from '../../src/drivers/engines/moby-api.ts';
import { mobyArguments, mobyConfig, mobyPlaces } from '../../src/drivers/engines/moby-config.ts';
import { storageSupport } from '../../src/drivers/machines/shared/engine-support.ts';
import { engineSpec } from '../contract/driver-suite.ts';
import { NETWORK, PLACES, scriptedShell } from './scripted-shell.ts';

const NEVER = new AbortController().signal;
describe('containerd', () => {
  const spec = engineSpec('containerd');

  test('records its spec before it starts and removes it after it has stopped', async () => {
    const { shell, files, events } = scriptedShell();
    const engine = containerdEngine(shell);
    await engine.perform({ do: 'start', spec }, NEVER);
    expect(await engine.observe(NEVER)).toEqual({
      state: 'running',
      spec,
      endpoint: 'unix:///s/run/containerd/containerd.sock',
      version: '1.6.20',
      workload: { runningContainers: 0, containers: 0, images: 0, running: [] },
    });
    await engine.perform({ do: 'start', spec }, NEVER);
    await engine.perform({ do: 'stop' }, NEVER);
    expect(events).toEqual(['start containerd', 'stop containerd', 'clear']);
    expect([...files.keys()]).toEqual([]);
    expect(await engine.observe(NEVER)).toEqual({ state: 'stopped' });
  });

  test('is unresponsive when it does not respond, and after a crash that left something', async () => {
    const { shell, left, tables, crash } = scriptedShell();
    const engine = containerdEngine(shell);
    await engine.perform({ do: 'start', spec }, NEVER);
    tables.healthy = false;
    expect(await engine.observe(NEVER)).toMatchObject({
      state: 'unresponsive',
      message: expect.stringMatching(/does not respond/),
    });
    crash('containerd');
    left.push('process 7 (sleep)', 'mount /a', 'mount /b', 'mount /c');
    expect(await engine.observe(NEVER)).toEqual({
      state: 'unresponsive',
      message:
        'not running: containerd (see containerd.log); left behind: process 7 (sleep), mount /a, mount /b and 1 more',
    });
    await engine.perform({ do: 'stop' }, NEVER);
    expect(await engine.observe(NEVER)).toEqual({ state: 'stopped' });
  });

  test('is stopped when nothing of it is left, as after a reboot of the machine', async () => {
    const { shell, crash, events } = scriptedShell();
    const engine = containerdEngine(shell);
    await engine.perform({ do: 'start', spec }, NEVER);
    crash('containerd');
    expect(await engine.observe(NEVER)).toEqual({ state: 'stopped' });
    await engine.perform({ do: 'start', spec }, NEVER);
    expect(events.slice(-2)).toEqual(['clear', 'start containerd']);
    expect(await engine.observe(NEVER)).toMatchObject({ state: 'running' });
  });

  test('reports the end of its log when it exits at once', async () => {
    const { shell, tables } = scriptedShell();
    tables.stillborn = 'containerd';
    await expect(containerdEngine(shell).perform({ do: 'start', spec }, NEVER)).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: 'containerd exited during its start: the last words',
      advice: 'See containerd.log in the log directory.',
    });
  });

  test('does not take a damaged record for a running engine', async () => {
    const { shell, files } = scriptedShell();
    const engine = containerdEngine(shell);
    await engine.perform({ do: 'start', spec }, NEVER);
    const patterns = { enabled: true, patterns: [7] };
    const damaged = [
      { ...spec, name: 'podman' },
      { ...spec, storageDriver: '' },
      { ...spec, allowedImages: patterns },
    ];
    for (const text of ['', '{', '[]', ...damaged.map((record) => JSON.stringify(record))]) {
      files.set('/s/run/containerd.json', text);
      expect(await engine.observe(NEVER), text).toMatchObject({
        state: 'unresponsive',
        message: expect.stringMatching(/damaged/),
      });
    }
  });
});

test('an engine refuses WebAssembly instead of ignoring it', async () => {
  const { shell, events } = scriptedShell();
  const spec = { ...engineSpec('moby'), webAssembly: true };
  await expect(mobyEngine(shell, '/g').perform({ do: 'start', spec }, NEVER)).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    message: expect.stringContaining('webAssembly'),
  });
  expect(events).toEqual([]);
});

test('a dockerd whose containerd exits at once is not left waiting for it', async () => {
  const { shell, tables, events } = scriptedShell();
  tables.stillborn = 'moby-containerd';
  await expect(mobyEngine(shell, '/g').perform({ do: 'start', spec: engineSpec('moby') }, NEVER)).rejects.toMatchObject(
    {
      code: 'ERR_DRIVER_FAILED',
      message: 'moby-containerd exited during its start: the last words',
    },
  );
  expect(events).toEqual(['start moby-containerd', 'start dockerd', 'stop dockerd']);
});

test('a dockerd with stored networks starts only after the default one is removed from its store', async () => {
  const { shell, files, tables, events } = scriptedShell();
  const places = mobyPlaces(PLACES);
  files.set(places.networkStore, 'networks');
  const engine = mobyEngine(shell, '/g');
  const spec = engineSpec('moby');
  tables.stillborn = 'moby-isolated';
  const commands: string[] = [];
  shell.run = async (argv) => {
    commands.push(argv.join(' '));
    return { exitCode: 0, stdout: '', stderr: '' };
  };
  await expect(engine.perform({ do: 'start', spec }, NEVER)).rejects.toMatchObject({
    message: 'moby-isolated exited during its start: the last words',
  });
  expect(events).toEqual(['start moby-containerd', 'start moby-isolated']);
  expect(commands).toEqual([
    'cp -- /s/data/moby/network/files/local-kv.db /s/data/moby-isolated/network/files/local-kv.db',
    'unshare --net=/s/run/isolated/net -- ip link add rd12345678 type bridge',
  ]);
  // On a copy, apart from everything that the engine itself has.
  expect(files.get(places.networkStore)).toBe('networks');
  expect(JSON.parse(files.get(places.isolated.config) ?? '')).toMatchObject({
    'data-root': '/s/data/moby-isolated',
    bridge: 'none',
    iptables: false,
    'ip-forward': false,
  });

  // The next start begins with a stop, which removes what is left.
  events.length = 0;
  await expect(engine.perform({ do: 'start', spec }, NEVER)).rejects.toThrow('moby-isolated exited');
  expect(events).toEqual([
    'stop moby-isolated',
    'stop moby-containerd',
    'clear',
    'start moby-containerd',
    'start moby-isolated',
  ]);
  await engine.perform({ do: 'stop' }, NEVER);
  expect([...files.keys()]).toEqual([places.networkStore]);
});

test('a dockerd in its own machine does not need that', async () => {
  const { shell, files, tables, events } = scriptedShell();
  files.set(mobyPlaces(PLACES).networkStore, 'networks');
  shell.network = async () => ({ ...NETWORK, shared: false });
  tables.stillborn = 'dockerd';
  await expect(mobyEngine(shell, '/g').perform({ do: 'start', spec: engineSpec('moby') }, NEVER)).rejects.toThrow();
  expect(events).toEqual(['start moby-containerd', 'start dockerd']);
});

test('moby is incomplete without its containerd, and a stop cleans up both', async () => {
  const { shell, files, events, crash } = scriptedShell();
  const engine = mobyEngine(shell, '/g');
  files.set('/s/run/moby.json', JSON.stringify(engineSpec('moby')));
  await shell.start([{ name: 'dockerd', argv: [] }]);
  crash('moby-containerd');
  expect(await engine.observe(NEVER)).toEqual({
    state: 'unresponsive',
    message: 'not running: moby-containerd (see moby-containerd.log)',
  });
  await engine.perform({ do: 'stop' }, NEVER);
  expect(events).toEqual(['start dockerd', 'stop dockerd', 'stop moby-containerd', 'clear']);
  expect(await engine.observe(NEVER)).toEqual({ state: 'stopped' });
});

describe('configuration', () => {
  test('of dockerd keeps it away from the packet filter, the system containerd and foreign paths', () => {
    const places = mobyPlaces(PLACES);
    const config = mobyConfig(engineSpec('moby'), places, NETWORK, '/rdctl-1');
    expect(config).toMatchObject({
      hosts: ['unix:///s/run/moby/docker.sock'],
      containerd: '/s/run/moby/c/containerd.sock',
      bridge: 'rd12345678',
      iptables: false,
      'ip-masq': false,
      'ip-forward': false,
      group: 'root',
      'deprecated-key-path': '/s/data/moby/key.json',
      'default-address-pools': [{ base: '10.9.0.0/16', size: 24 }],
    });
    expect(config).not.toHaveProperty('features');
    expect(mobyConfig(engineSpec('moby', 'classic'), places, NETWORK, '/g')).toHaveProperty('features');
    expect(mobyArguments(places)).toContain('/s/run/moby/daemon.json');
  });

  test('of containerd quotes its values', () => {
    const text = containerdConfig(containerdPlaces('/a "b"\\c', '/run/x'));
    expect(text).toContain('root = "/a \\"b\\"\\\\c"');
    expect(text).toContain('address = "/run/x/containerd.sock"');
  });
});

describe('counts', () => {
  test('come from dockerd, and are omitted where it does not report them', () => {
    expect(parseVersion('Docker/20.10.24+dfsg1 (linux)')).toBe('20.10.24+dfsg1');
    expect(parseVersion(undefined)).toBe('unknown');
    const containers = ['running', 'exited', 'running', 'created', 'paused'].map((State) => ({ State }));
    expect(countsIn(containers, { message: 'no' })).toEqual({ runningContainers: 2, containers: 5 });
    expect(countsIn({ message: 'no' }, [{}, {}])).toEqual({ images: 2 });
  });

  test('include the names of what runs, what belongs to the cluster, and what dockerd restarts', () => {
    const Id = '0123456789abcdef'.repeat(4);
    const State = 'running';
    const list = [
      { Id, State, Names: ['/shop/database', '/db'] },
      { Id, State, Names: [] },
      { Id, State, Names: ['/k8s_dns'], Labels: { 'io.kubernetes.pod.uid': '1' } },
      { Id, State, Names: ['/task'], Labels: { 'com.docker.swarm.service.id': '1' } },
      { Id, State: 'exited', Names: ['/gone'] },
      {
        Id,
        State,
        Names: ['/web'],
        Ports: [
          { IP: '0.0.0.0', PrivatePort: 80, PublicPort: 8080, Type: 'tcp' },
          { IP: '::', PrivatePort: 80, PublicPort: 8080, Type: 'tcp' },
          { IP: '127.0.0.1', PrivatePort: 53, PublicPort: 53, Type: 'udp' },
          { PrivatePort: 443, Type: 'tcp' },
          { IP: '0.0.0.0', PrivatePort: 7, PublicPort: 7, Type: 'sctp' },
          'damaged',
        ],
      },
    ];
    const ports = [
      { protocol: 'tcp', port: 8080 },
      { protocol: 'udp', port: 53 },
    ];
    expect(runningIn(list)).toEqual([
      { name: 'db', id: Id },
      { name: '0123456789ab', id: Id },
      { name: 'k8s_dns', id: '', pod: true },
      { name: 'task', id: '' },
      { name: 'web', id: Id, ports },
    ]);
    expect(runningIn({ message: 'no' })).toBeUndefined();
    const policies = ['always', 'unless-stopped', 'no', '', 'on-failure', undefined];
    expect(policies.map((Name) => parseReturns({ HostConfig: { RestartPolicy: { Name } } }))).toEqual([
      true,
      true,
      false,
      false,
      undefined,
      undefined,
    ]);
    expect(parseReturns({ message: 'no' })).toBeUndefined();
  });

  test('come from the task table', () => {
    expect(runningTasks('TASK    PID    STATUS\na b\nweb     12     RUNNING\nold     0      STOPPED\n')).toEqual([
      'web',
    ]);
    expect(runningTasks('')).toEqual([]);
  });
});

test.each([
  ['26.1.5+dfsg1-9+b9', undefined],
  ['24.0.0', undefined],
  ['20.10.24+dfsg1-1+deb12u1', /needs dockerd 24 or later, and it is dockerd 20\.10\.24/],
  ['24', /and it is dockerd 24$/],
  [undefined, /its version is unknown/],
])('with dockerd %s, the containerd store is refused as %s', (version, reason) => {
  const support = storageSupport(version)['containerEngine.mobyStorageDriver'];
  if (reason === undefined) expect(support).toEqual({ level: 'enforced' });
  else expect(support).toEqual({ level: 'enforced', except: ['snapshotter'], reason: expect.stringMatching(reason) });
});
