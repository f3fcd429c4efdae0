import { expect, test } from 'vitest';
import type { EngineStatus, PublishedPort } from '../../src/drivers/driver.ts';
import { withContainers } from '../../src/reconcile/status-document.ts';

const running: EngineStatus = {
  state: 'running',
  spec: {
    name: 'moby',
    storageDriver: 'auto',
    webAssembly: false,
    allowedImages: { enabled: false, patterns: [] },
  },
  endpoint: 'unix:///docker.sock',
  version: '26.1',
  workload: {
    running: [
      { name: 'idle' },
      {
        name: 'web',
        ports: [
          { protocol: 'tcp', port: 80 },
          { protocol: 'tcp', port: 8080 },
        ],
      },
      { name: 'dns', ports: [{ protocol: 'udp', port: 53 }] },
    ],
  },
};
const at = (protocol: 'tcp' | 'udp', port: number): PublishedPort => ({
  protocol,
  port,
  state: 'forwarded',
  addresses: ['127.0.0.1'],
});

test('ports are named after the container that publishes them, unless the machine knows better', () => {
  const service: PublishedPort = { ...at('tcp', 80), claimedBy: 'default/web:http' };
  const ports = [at('tcp', 53), at('udp', 53), service, at('tcp', 8080), at('tcp', 9000)];
  const named = withContainers(ports, { moby: running, containerd: { state: 'stopped' } });
  expect(named).toEqual([
    at('tcp', 53),
    { ...at('udp', 53), claimedBy: 'container dns' },
    service,
    { ...at('tcp', 8080), claimedBy: 'container web' },
    at('tcp', 9000),
  ]);
  expect(withContainers(ports, { moby: { state: 'stopped' }, containerd: { state: 'unknown' } })).toEqual(ports);
  expect(withContainers(ports, { moby: { ...running, workload: {} }, containerd: { state: 'stopped' } })).toEqual(
    ports,
  );
});
