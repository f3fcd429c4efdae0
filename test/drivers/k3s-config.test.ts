import { expect, test } from 'vitest';
import { k3sArguments, k3sConfig, k3sPlaces, pluginsOf, programOf } from '../../src/drivers/clusters/k3s/config.ts';
import { parseK3s } from '../../src/drivers/clusters/k3s/releases.ts';
import type { ClusterSpec } from '../../src/drivers/driver.ts';
import { PLACES } from './scripted-shell.ts';

const places = k3sPlaces(PLACES);
const SPEC: ClusterSpec = {
  version: '1.33.6',
  port: 6443,
  traefik: true,
  flannel: true,
  spinkube: false,
  localhostOnly: false,
  engine: 'moby',
};

test('the configuration for moby', async () => {
  const text = k3sConfig(SPEC, places, '/s/run/moby/docker.sock');
  await expect(text).toMatchFileSnapshot('../golden/k3s/moby.yaml');
});

test('the configuration for containerd on another port, without ingress and network', async () => {
  const spec: ClusterSpec = { ...SPEC, port: 7443, traefik: false, flannel: false, engine: 'containerd' };
  const text = k3sConfig(spec, places, '/s/run/containerd/containerd.sock');
  await expect(text).toMatchFileSnapshot('../golden/k3s/containerd.yaml');
});

test('everything that survives a stop is below the data directory of the machine', () => {
  const kept = [places.programs, places.state, places.kubelet, places.version, places.kubeconfig, places.nodePassword];
  for (const path of kept) expect(path.startsWith(`${PLACES.data}/k3s/`)).toBe(true);
  for (const path of [places.record, places.config]) expect(path.startsWith(`${PLACES.run}/`)).toBe(true);
});

test('the command line names a path of the instance and no secret', () => {
  expect(k3sArguments(programOf(places, 'v1.33.6+k3s1'), places)).toEqual([
    '/s/data/k3s/programs/v1.33.6+k3s1/k3s',
    'server',
    '--config',
    '/s/run/k3s.yaml',
  ]);
});

test.each([
  ['v1.27.16+k3s1', 'current/bin'],
  ['v1.28.14+k3s1', 'current/bin'],
  ['v1.28.15+k3s1', 'cni'],
  ['v1.31.1+k3s1', 'current/bin'],
  ['v1.31.2+k3s1', 'cni'],
  ['v1.32.0+k3s1', 'cni'],
  ['v2.0.0+k3s1', 'cni'],
])('network plugins of %s', (text, path) => {
  const release = parseK3s(text);
  expect(release && pluginsOf(places, release)).toBe(`/s/data/k3s/state/data/${path}`);
});
