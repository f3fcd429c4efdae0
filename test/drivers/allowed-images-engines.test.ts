import { describe, expect, test } from 'vitest';
import { containerdEngine } from '../../src/drivers/engines/containerd.ts';
import { engineRecord } from '../../src/drivers/engines/engine-record.ts';
import { mobyEngine } from '../../src/drivers/engines/moby.ts';
import { gatewayEnvironment, mobyConfig, mobyPlaces } from '../../src/drivers/engines/moby-config.ts';
import { RdError } from '../../src/errors.ts';
import { engineSpec } from '../contract/driver-suite.ts';
import { NETWORK, PLACES, scriptedShell } from './scripted-shell.ts';

const NEVER = new AbortController().signal;
const HOSTS = '/s/run/containerd/hosts.d/_default/hosts.toml';
const RECORD = '/s/run/containerd.json';

const listed = (...patterns: string[]) => ({ ...engineSpec('containerd'), allowedImages: { enabled: true, patterns } });

describe('containerd with allowed images', () => {
  test('serves a gateway before it starts, routes clients to it, and removes both after it has stopped', async () => {
    const { shell, files, events, offers } = scriptedShell();
    const engine = containerdEngine(shell);
    await engine.perform({ do: 'start', spec: listed('busybox') }, NEVER);
    expect(events).toEqual(['offer port 4000', 'start containerd']);
    const { gateway } = JSON.parse(files.get(RECORD) ?? '');
    expect(gateway).toEqual({ port: 4000, secret: expect.stringMatching(/^[\w-]{43}$/) });
    const cookie = `  Cookie = "rdctl-gateway=${gateway.secret}"`;
    expect(files.get(HOSTS)?.split('\n')).toEqual([
      'server = "http://127.0.0.1:4000"',
      '[header]',
      cookie,
      '[host."http://127.0.0.1:4000"]',
      '  capabilities = ["pull", "resolve"]',
      '[host."http://127.0.0.1:4000".header]',
      cookie,
      '',
    ]);
    expect(await engine.observe(NEVER)).toMatchObject({ state: 'running', spec: listed('busybox') });
    await engine.perform({ do: 'stop' }, NEVER);
    expect([...files.keys(), ...offers]).toEqual([]);
  });

  test('accepts new patterns while it runs, and records them', async () => {
    const { shell, files, events, logged } = scriptedShell();
    const engine = containerdEngine(shell);
    await engine.perform({ do: 'start', spec: listed('busybox') }, NEVER);
    events.length = 0;
    const { gateway } = JSON.parse(files.get(RECORD) ?? '');
    await engine.perform({ do: 'adjust', spec: listed('a b', 'alpine') }, NEVER);
    expect(events).toEqual([]);
    expect(JSON.parse(files.get(RECORD) ?? '')).toEqual({ ...listed('a b', 'alpine'), gateway });
    expect(await engine.observe(NEVER)).toMatchObject({ spec: listed('a b', 'alpine') });
    // Logged once, not at every observation.
    expect(logged).toContainEqual(expect.objectContaining({ pattern: 'a b', reason: expect.stringContaining('a b') }));
    expect(logged.filter((entry) => 'pattern' in entry)).toHaveLength(1);
  });

  test('restarts when more than the patterns differ', async () => {
    const { shell, events } = scriptedShell();
    const engine = containerdEngine(shell);
    await engine.perform({ do: 'start', spec: engineSpec('containerd') }, NEVER);
    expect(events).toEqual(['start containerd']);
    events.length = 0;
    await engine.perform({ do: 'adjust', spec: listed('busybox') }, NEVER);
    expect(events).toEqual(['stop containerd', 'clear', 'offer port 4000', 'start containerd']);
  });

  test('is served on the same port after a service restart', async () => {
    const { shell, events, offers } = scriptedShell();
    const first = containerdEngine(shell);
    await first.perform({ do: 'start', spec: listed('busybox') }, NEVER);
    await first.release?.();
    expect([...offers]).toEqual([]);
    events.length = 0;
    const second = containerdEngine(shell);
    for (let look = 0; look < 2; look += 1) expect(await second.observe(NEVER)).toMatchObject({ state: 'running' });
    expect(events).toEqual(['offer port 4000']);
  });

  test('is not considered running when its port is taken or was not recorded', async () => {
    const { shell, files, tables } = scriptedShell();
    await containerdEngine(shell).perform({ do: 'start', spec: listed('busybox') }, NEVER);
    tables.taken = ['port 4000'];
    expect(await containerdEngine(shell).observe(NEVER)).toEqual({
      state: 'unresponsive',
      message: 'its list of allowed images cannot be enforced: port 4000 is taken',
    });
    for (const gateway of [{}, { gatewayPort: 4001 }, { gateway: { port: 4001 } }]) {
      files.set(RECORD, JSON.stringify({ ...listed('busybox'), ...gateway }));
      expect(await containerdEngine(shell).observe(NEVER)).toMatchObject({
        state: 'unresponsive',
        message: expect.stringContaining('names no registry gateway'),
      });
    }
  });

  test('does not start when the gateway cannot be served', async () => {
    const { shell, events, tables } = scriptedShell();
    tables.taken = ['port 4000'];
    const starting = containerdEngine(shell).perform({ do: 'start', spec: listed('busybox') }, NEVER);
    await expect(starting).rejects.toBeInstanceOf(RdError);
    expect(events).not.toContain('start containerd');
  });
});

describe('moby with allowed images', () => {
  const spec = { ...listed('busybox'), name: 'moby' as const };

  test('serves the plugin and the proxy before dockerd starts, and starts nothing when one of them fails', async () => {
    const { shell, events, offers, tables } = scriptedShell();
    tables.taken = ['/s/run/moby/plugin.sock'];
    const starting = mobyEngine(shell, '/g').perform({ do: 'start', spec }, NEVER);
    await expect(starting).rejects.toMatchObject({ code: 'ERR_PORT_IN_USE' });
    expect(events).toEqual(['offer port 4000']);
    expect([...offers]).toEqual([]);
  });

  test('removes the discovery file of its plugin that a killed start left', async () => {
    const { shell, files } = scriptedShell();
    const { pluginSpec } = mobyPlaces(PLACES);
    files.set(pluginSpec, 'unix:///x');
    await engineRecord(shell, '/s/run/moby.json').write({ spec });
    await mobyEngine(shell, '/g').perform({ do: 'stop' }, NEVER);
    expect(files.has(pluginSpec)).toBe(false);
  });

  test('names its plugin after the instance, and only when there is a list', () => {
    const places = mobyPlaces(PLACES);
    expect(mobyConfig(spec, places, NETWORK, '/g')).toMatchObject({ 'authorization-plugins': ['rdctl-12345678'] });
    expect(mobyConfig(engineSpec('moby'), places, NETWORK, '/g')).not.toHaveProperty('authorization-plugins');
    expect(places.pluginSpec).toBe('/etc/docker/plugins/rdctl-12345678.spec');
  });

  test('leaves dockerd no way around the proxy', () => {
    expect(gatewayEnvironment({ port: 4000, secret: 's-s_s' }, mobyPlaces(PLACES))).toEqual({
      HTTP_PROXY: 'http://rdctl:s-s_s@127.0.0.1:4000',
      HTTPS_PROXY: 'http://rdctl:s-s_s@127.0.0.1:4000',
      http_proxy: 'http://rdctl:s-s_s@127.0.0.1:4000',
      https_proxy: 'http://rdctl:s-s_s@127.0.0.1:4000',
      NO_PROXY: '',
      no_proxy: '',
      SSL_CERT_FILE: mobyPlaces(PLACES).authority,
    });
  });
});
