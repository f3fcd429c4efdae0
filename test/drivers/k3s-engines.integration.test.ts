import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { containerdConfig, containerdPlaces } from '../../src/drivers/engines/containerd-daemon.ts';
import { containerdPods } from '../../src/drivers/engines/containerd-images.ts';
import { mobyPods } from '../../src/drivers/engines/moby-images.ts';
import { podNetwork } from '../../src/drivers/index.ts';
import type { Shell } from '../../src/drivers/shell.ts';
import { RdError } from '../../src/errors.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { PLACES, scriptedShell } from './scripted-shell.ts';

const NEVER = new AbortController().signal;

/** A dockerd with these responses: status and text by method and path. */
async function dockerd(answers: Record<string, [number, string]>) {
  const socket = join(temporaryDirectory(), 'd.sock');
  const asked: string[] = [];
  const bodies: string[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const key = `${request.method} ${decodeURIComponent(request.url ?? '')}`;
    asked.push(key);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    bodies.push(Buffer.concat(chunks).toString());
    const [status, text] = answers[key.split('?')[0] ?? ''] ?? [404, '{"message":"none"}'];
    response.writeHead(status).end(text);
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => void server.close());
  const { shell } = scriptedShell();
  return { asked, bodies, pods: mobyPods({ ...shell, localSocket: async () => socket }) };
}

const CONTAINERS = JSON.stringify([{ Id: 'aa' }, { Id: 'bb' }, { no: 1 }]);

test('moby stops the containers of pods, and succeeds when they are already gone', async () => {
  const { pods, asked } = await dockerd({
    'GET /containers/json': [200, CONTAINERS],
    'POST /containers/aa/stop': [304, ''],
  });
  await pods.endPods('stop', NEVER);
  expect(asked[0]).toBe('GET /containers/json?all=1&filters={"label":["io.kubernetes.pod.uid"]}');
  expect(asked.slice(1).sort()).toEqual(['POST /containers/aa/stop?t=5', 'POST /containers/bb/stop?t=5']);
});

test('moby removes them with their writable layers', async () => {
  const { pods, asked } = await dockerd({
    'GET /containers/json': [200, CONTAINERS],
    'DELETE /containers/aa': [204, ''],
  });
  await pods.endPods('remove', NEVER);
  expect(asked.slice(1).sort()).toEqual(['DELETE /containers/aa?force=1&v=1', 'DELETE /containers/bb?force=1&v=1']);
});

test('moby gets the archive unchanged', async () => {
  const archive = join(temporaryDirectory(), 'images');
  writeFileSync(archive, 'the archive');
  const { pods, bodies } = await dockerd({ 'POST /images/load': [200, '{"stream":"Loaded"}\n'] });
  await pods.loadImages(archive, NEVER);
  expect(bodies).toEqual(['the archive']);
});

test.each<[string, [number, string], object]>([
  [
    'refuses',
    [403, '{"message":"authorization denied"}'],
    { code: 'ERR_FORBIDDEN', message: expect.stringMatching(/authorization denied/) },
  ],
  [
    'fails on the way',
    [200, '{"error":"no space left"}\n'],
    { code: 'ERR_DRIVER_FAILED', message: expect.stringMatching(/no space left/) },
  ],
  ['fails', [500, '{"message":"bad"}'], { code: 'ERR_DRIVER_FAILED' }],
])('a moby that %s to load images', async (_, answer, error) => {
  const archive = join(temporaryDirectory(), 'images');
  writeFileSync(archive, 'x');
  const { pods } = await dockerd({ 'POST /images/load': answer });
  await expect(pods.loadImages(archive, NEVER)).rejects.toMatchObject(error);
});

test('a missing archive is an error, not an empty archive', async () => {
  const { pods } = await dockerd({ 'POST /images/load': [200, ''] });
  await expect(pods.loadImages('/nowhere/at/all', NEVER)).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringMatching(/ENOENT/),
  });
});

function containerd(answer: (args: string) => string) {
  const { shell, files, events } = scriptedShell();
  const ran: string[] = [];
  const run: Shell['run'] = async (argv) => {
    const args = argv.slice(argv.indexOf('k8s.io') + 1).join(' ');
    ran.push(args);
    if (argv[0] === 'ctr') {
      const address = ['--address', '/s/run/containerd/containerd.sock'];
      expect(argv.slice(0, 7)).toEqual(['ctr', ...address, '--connect-timeout', '5s', '--namespace', 'k8s.io']);
    }
    return { exitCode: 0, stdout: answer(args), stderr: '' };
  };
  return { pods: containerdPods({ ...shell, run }), ran, files, events };
}

test('containerd stops tasks, and removes containers only when asked to', async () => {
  const { pods, ran } = containerd((args) =>
    args === 'tasks ls -q' ? 'one\n' : args === 'containers ls -q' ? 'one\ntwo\n' : '',
  );
  await pods.endPods('stop', NEVER);
  expect(ran).toEqual(['tasks ls -q', 'tasks delete --force one']);
  await pods.endPods('remove', NEVER);
  expect(ran.slice(2)).toEqual([
    'tasks ls -q',
    'tasks delete --force one',
    'containers ls -q',
    'containers delete one',
    'containers delete two',
  ]);
});

test('containerd imports images for Kubernetes, and removes the archive even when that fails', async () => {
  const good = containerd(() => '');
  await good.pods.loadImages('/here/images', NEVER);
  expect(good.ran).toEqual(['gzip -d -f /s/data/pod-images.tar.gz', 'images import --digests /s/data/pod-images.tar']);
  expect([...good.files.keys()]).toEqual([]);
  const bad = containerd(() => {
    throw new RdError('ERR_DRIVER_FAILED', 'ctr failed');
  });
  await expect(bad.pods.loadImages('/here/images', NEVER)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  expect([...bad.files.keys()]).toEqual([]);
  expect(bad.events).toEqual(['copy in /s/data/pod-images.tar.gz 600']);
});

test('only a containerd for a cluster serves the CRI', async () => {
  const places = containerdPlaces('/s/data/containerd', '/s/run/containerd');
  expect(containerdConfig(places)).toMatch(/disabled_plugins = \["io\.containerd\.grpc\.v1\.cri"/);
  const text = containerdConfig(places, podNetwork(PLACES));
  expect(text).not.toMatch(/disabled_plugins = .*cri"/);
  await expect(text).toMatchFileSnapshot('../golden/k3s/containerd.toml');
});
