import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, connect as dialPort, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import type { ServicePort } from '../../../src/drivers/driver.ts';
import { RdError } from '../../../src/errors.ts';
import { forwardFile } from '../../../src/features/port-forwards/forward.ts';
import { createPortForwards, type PortForwards } from '../../../src/features/port-forwards/manager.ts';
import type { LoopStatus } from '../../../src/reconcile/contract.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const WEB = { namespace: 'default', service: 'web', k8sPort: 80, hostPort: 0 };

/** Forwards to a cluster and far ends that the test controls. */
async function subject(file = join(temporaryDirectory(), 'forwards.json')) {
  let up = true;
  let listener: (status: LoopStatus) => void = () => undefined;
  const status = (): LoopStatus => ({
    power: 'started',
    generation: 1,
    observedGeneration: 1,
    converged: true,
    backendState: 'STARTED',
    conditions: [],
    machine: { state: 'unknown' },
    engines: { moby: { state: 'unknown' }, containerd: { state: 'unknown' } },
    cluster: up
      ? {
          state: 'running',
          installedVersion: '1.30.1',
          ready: true,
          spec: {
            version: '1.30.1',
            port: 6443,
            traefik: true,
            flannel: true,
            spinkube: false,
            localhostOnly: false,
            engine: 'moby',
          },
        }
      : { state: 'stopped', installedVersion: '1.30.1' },
    phases: [],
    counters: { steps: 0, restarts: 0, resets: 0, failures: 0 },
  });
  const dialled: ServicePort[] = [];
  const notices: string[] = [];
  const far: Socket[] = [];
  const waits: (() => void)[] = [];
  const pods = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    far.push(socket);
  });
  const podPort = await listening(pods);
  onTestFinished(() => {
    for (const socket of far) socket.destroy();
    pods.close();
  });
  const announced: unknown[] = [];
  const script = { dial: (): Promise<Duplex> => call(podPort), refuse: false };
  const forwards = await createPortForwards({
    store: forwardFile(file),
    cluster: {
      async connect(target) {
        dialled.push(target);
        return script.dial();
      },
    },
    noCluster: 'the test driver has no cluster',
    controllers: {
      status,
      onChange(call) {
        listener = call;
        return () => undefined;
      },
    },
    clock: { now: () => 0, sleep: () => new Promise<void>((done) => waits.push(done)) },
    log: () => undefined,
    notice: (text) => notices.push(text),
    async announce(change, by) {
      if (script.refuse) throw new RdError('ERR_IO', 'the history is full');
      announced.push([change, by.how]);
      return (failure) => announced.push(failure === undefined ? 'done' : 'failed');
    },
  });
  onTestFinished(() => forwards.close());
  return {
    file,
    notices,
    announced,
    forwards,
    dialled,
    far,
    script,
    waits,
    cluster(state: boolean) {
      up = state;
      listener(status());
    },
  };
}

function call(port: number): Promise<Socket> {
  return new Promise((done, fail) => {
    const socket = dialPort({ host: '127.0.0.1', port, allowHalfOpen: true }, () => done(socket));
    socket.once('error', fail);
    onTestFinished(() => void socket.destroy());
  });
}

function listening(server: Server): Promise<number> {
  return new Promise((done) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      done(typeof address === 'object' && address ? address.port : 0);
    });
  });
}

/** Everything up to the end of that half; the other half stays open. */
async function heard(stream: Duplex): Promise<string> {
  let text = '';
  stream.on('data', (part: Buffer) => {
    text += part.toString();
  });
  await new Promise((done) => stream.once('end', done));
  return text;
}

/** Ends well, or with what the other side did. */
function ending(socket: Duplex): Promise<string> {
  return new Promise((done) => {
    socket.on('error', (error) => done('code' in error ? String(error.code) : error.message));
    socket.once('close', () => done('closed'));
    socket.resume();
  });
}

const stateOf = (forwards: PortForwards) => forwards.list().portForwards.map(({ state }) => state);

async function arrived(far: Socket[], count = 1): Promise<Socket> {
  await expect.poll(() => far.length).toBe(count);
  const end = far[count - 1];
  if (!end) throw new Error('nobody came');
  return end;
}

test('forwards bytes in both directions, and half-closes of either side', async () => {
  const { forwards, far, dialled } = await subject();
  const { hostPort, state } = await forwards.ensure(WEB, 'now');
  expect(state).toBe('listening');
  const client = await call(hostPort);
  const end = await arrived(far);
  expect(dialled).toEqual([{ namespace: 'default', service: 'web', port: 80 }]);
  client.end('question');
  expect(await heard(end)).toBe('question');
  // The client has sent everything, and still receives the response.
  end.end('answer');
  expect(await heard(client)).toBe('answer');
  await expect.poll(() => forwards.list().portForwards[0]?.connections).toBe(0);
});

test('applies backpressure for a slow reader', async () => {
  const { forwards, far } = await subject();
  const { hostPort } = await forwards.ensure(WEB, 'now');
  const client = await call(hostPort);
  const end = await arrived(far);
  const chunk = Buffer.alloc(256 * 1024, 'x');
  const total = 64 * 1024 * 1024;
  let accepted = 0;
  // The other end does not read: only what buffers hold is accepted, far less than everything.
  while (accepted < total && client.write(chunk)) accepted += chunk.length;
  await expect.poll(() => client.writableNeedDrain).toBe(true);
  expect(accepted).toBeLessThan(total);
  let seen = 0;
  end.on('data', (part: Buffer) => {
    seen += part.length;
  });
  client.end();
  await new Promise((done) => end.once('end', done));
  expect(seen).toBe(accepted + chunk.length);
});

test('resets the other side when one side is reset', async () => {
  const { forwards, far } = await subject();
  const { hostPort } = await forwards.ensure(WEB, 'now');
  const client = await call(hostPort);
  const end = await arrived(far);
  const gone = ending(end);
  client.resetAndDestroy();
  await gone;
  const second = await call(hostPort);
  const ended = ending(second);
  (await arrived(far, 2)).resetAndDestroy();
  await ended;
  expect(second.destroyed).toBe(true);
});

test('resets a connection that nothing serves, and lists the reason', async () => {
  const { forwards, script } = await subject();
  script.dial = () => Promise.reject(new RdError('ERR_NOT_FOUND', 'there is no such service'));
  const { hostPort } = await forwards.ensure(WEB, 'now');
  const client = dialPort({ host: '127.0.0.1', port: hostPort });
  expect(await ending(client)).toBe('ECONNRESET');
  expect(forwards.list().portForwards).toMatchObject([{ state: 'listening', lastError: 'there is no such service' }]);
});

test('keeps an identical forward, moves another to a new port, and closes connections through the old one', async () => {
  const { forwards, far } = await subject();
  const first = await forwards.ensure(WEB, 'now');
  expect(await forwards.ensure({ ...WEB, hostPort: String(first.hostPort) }, 'now')).toEqual(first);
  const client = await call(first.hostPort);
  await arrived(far);
  const moved = await forwards.ensure(WEB, 'now');
  expect(moved.hostPort).not.toBe(first.hostPort);
  await ending(client);
  await expect(call(first.hostPort)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  expect(forwards.list().portForwards).toHaveLength(1);
});

test('refuses a port used by another program or forward, and leaves everything unchanged', async () => {
  const { forwards } = await subject();
  const other = createServer();
  onTestFinished(() => void other.close());
  const taken = await listening(other);
  const { hostPort } = await forwards.ensure(WEB, 'now');
  await expect(forwards.ensure({ ...WEB, hostPort: taken }, 'now')).rejects.toMatchObject({
    code: 'ERR_PORT_IN_USE',
    message: `127.0.0.1:${taken} is in use by another program`,
  });
  expect(forwards.list().portForwards).toMatchObject([{ hostPort, state: 'listening' }]);
  await expect(forwards.ensure({ ...WEB, service: 'other', hostPort }, 'now')).rejects.toMatchObject({
    message: `127.0.0.1:${hostPort} is forwarded to default/web:80`,
  });
});

test('closes with the cluster and opens with it', async () => {
  const { forwards, far, cluster } = await subject();
  const { hostPort } = await forwards.ensure(WEB, 'now');
  const client = await call(hostPort);
  await arrived(far);
  cluster(false);
  await ending(client);
  expect(forwards.list().portForwards).toMatchObject([{ state: 'waiting', reason: 'the cluster is not running' }]);
  await expect(call(hostPort)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await expect(forwards.ensure(WEB, 'now')).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  cluster(true);
  await expect.poll(() => stateOf(forwards)).toEqual(['listening']);
  await call(hostPort);
});

test('can be created before the cluster runs, and reports when its port was taken in the meantime', async () => {
  const { forwards, cluster, waits } = await subject();
  const probe = createServer();
  const hostPort = await listening(probe);
  cluster(false);
  expect(await forwards.ensure({ ...WEB, hostPort }, 'later')).toMatchObject({ state: 'waiting', hostPort });
  await expect(forwards.ensure(WEB, 'later')).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  cluster(true);
  await expect.poll(() => stateOf(forwards)).toEqual(['failed']);
  expect(forwards.list().portForwards[0]?.reason).toBe(`127.0.0.1:${hostPort} is in use by another program`);
  await new Promise<void>((done) => probe.close(() => done()));
  await expect.poll(() => waits.length).toBe(1);
  waits[0]?.();
  await expect.poll(() => stateOf(forwards)).toEqual(['listening']);
});

test('is restored by the next service; a removed one is not', async () => {
  const first = await subject();
  const { hostPort } = await first.forwards.ensure(WEB, 'now');
  await first.forwards.ensure({ ...WEB, service: 'second', k8sPort: 'http' }, 'now');
  expect(await first.forwards.remove({ namespace: 'default', service: 'second', k8sPort: 'http' })).toBe(true);
  expect(await first.forwards.remove({ namespace: 'default', service: 'second', k8sPort: 'http' })).toBe(false);
  expect(await first.forwards.remove({ namespace: 'Bad Name', service: '', k8sPort: '-' })).toBe(false);
  await first.forwards.close();
  const second = await subject(first.file);
  await expect.poll(() => stateOf(second.forwards)).toEqual(['listening']);
  expect(second.forwards.list().portForwards).toMatchObject([{ ...WEB, hostPort }]);
});

test('loads what it can from a file with an error, reports it, and keeps the file', async () => {
  const good = { ...WEB, hostPort: 0 };
  for (const [text, kept] of [
    ['{', 0],
    ['[]', 0],
    ['{"format":1,"portForwards":[{"namespace":1}]}', 0],
    [JSON.stringify({ format: 1, portForwards: [{ ...good, hostPort: 'x' }, good, 7] }), 1],
  ] as const) {
    const folder = temporaryDirectory();
    const file = join(folder, 'forwards.json');
    writeFileSync(file, text);
    const { forwards, notices } = await subject(file);
    expect(forwards.list().portForwards).toHaveLength(kept);
    expect(notices).toEqual([expect.stringContaining('port forwards has a mistake')]);
    const [aside = ''] = readdirSync(folder).filter((name) => name.includes('.corrupt-'));
    expect(readFileSync(join(folder, aside), 'utf8')).toBe(text);
  }
});

test.each([
  [{ ...WEB, namespace: 7 }, 'namespace must be the name of a namespace, not 7'],
  [{ ...WEB, namespace: 'A' }, 'namespace must be the name of a namespace, not "A"'],
  [{ ...WEB, service: '' }, 'service must be the name of a service, not ""'],
  [{ ...WEB, service: 'a'.repeat(64) }, 'service must be the name of a service'],
  [{ ...WEB, k8sPort: 0 }, 'k8sPort must be a number from 1 to 65535, or the name of a port, not 0'],
  [{ ...WEB, k8sPort: '99999' }, 'k8sPort must be'],
  [{ ...WEB, k8sPort: 80.5 }, 'k8sPort must be'],
  [{ ...WEB, k8sPort: 'a-name-too-long-for-it' }, 'k8sPort must be'],
  [{ ...WEB, k8sPort: null }, 'k8sPort must be'],
  [{ ...WEB, hostPort: 65_536 }, 'hostPort must be a number from 0 to 65535, not 65536'],
  [{ ...WEB, hostPort: -1 }, 'hostPort must be'],
  [{ ...WEB, hostPort: 'http' }, 'hostPort must be'],
  [{ ...WEB, hostPort: true }, 'hostPort must be'],
])('refuses %j', async (body, text) => {
  const { forwards } = await subject();
  await expect(forwards.ensure(body, 'now')).rejects.toMatchObject({
    code: 'ERR_BODY_INVALID',
    message: expect.stringContaining(text),
  });
});

test('accepts numbers as text and an empty namespace as the default one', async () => {
  const { forwards } = await subject();
  const made = await forwards.ensure({ namespace: '', service: 'web', k8sPort: '80', hostPort: '0' }, 'now');
  expect(made).toMatchObject({ namespace: 'default', k8sPort: 80 });
  expect(await forwards.remove({ namespace: 'default', service: 'web', k8sPort: '80' })).toBe(true);
});

test('a change made alone is announced before it is stored, and its end after that', async () => {
  const { forwards, announced, script, file } = await subject();
  const by = { how: 'api' } as const;
  const { hostPort: port } = await forwards.ensure({ ...WEB, hostPort: 0 }, 'now', by);
  const name = 'default/web:80';
  expect(announced.splice(0)).toEqual([[{ name, after: port }, 'api'], 'done']);
  await forwards.ensure({ ...WEB, hostPort: port }, 'now', by);
  expect(announced).toEqual([]);
  script.refuse = true;
  const stored = readFileSync(file, 'utf8');
  const refused = { code: 'ERR_IO' };
  await expect(forwards.remove({ namespace: 'default', service: 'web', k8sPort: 80 }, by)).rejects.toMatchObject(
    refused,
  );
  await expect(forwards.ensure({ ...WEB, hostPort: 0 }, 'now', by)).rejects.toMatchObject(refused);
  expect(readFileSync(file, 'utf8')).toBe(stored);
  expect(forwards.list().portForwards).toMatchObject([{ hostPort: port, state: 'listening' }]);
  script.refuse = false;
  expect(await forwards.remove({ namespace: 'default', service: 'web', k8sPort: 80 }, by)).toBe(true);
  expect(announced).toEqual([[{ name, before: port }, 'api'], 'done']);
});

test('refuses everything on a driver without a cluster', async () => {
  const forwards = await createPortForwards({
    store: forwardFile(join(temporaryDirectory(), 'f.json')),
    cluster: undefined,
    noCluster: 'the host driver has no cluster',
    controllers: {
      status: () => ({ cluster: { state: 'unsupported' } }) as LoopStatus,
      onChange: () => () => undefined,
    },
    clock: { now: () => 0, sleep: async () => undefined },
    log: () => undefined,
    notice: () => undefined,
    announce: async () => () => undefined,
  });
  await expect(forwards.ensure(WEB, 'later')).rejects.toMatchObject({
    code: 'ERR_SETTING_UNSUPPORTED',
    message: 'the host driver has no cluster',
  });
  expect(forwards.list()).toMatchObject({ supported: false, reason: 'the host driver has no cluster' });
  expect(await forwards.remove({ namespace: 'default', service: 'web', k8sPort: 80 })).toBe(false);
});
