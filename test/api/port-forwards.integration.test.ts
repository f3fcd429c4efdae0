import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { startApi } from '../helpers/api.ts';
import { startService } from '../helpers/service.ts';

const PATH = '/v1/port_forwarding';

/** Raw requests to a service with a running simulated cluster. */
async function stage() {
  const running = await startService();
  await running.converged();
  const send = async (method: string, path: string, body?: string) => {
    const answer = await running.client.request({ method, path, ...(body === undefined ? {} : { body }) });
    return [answer.status, answer.body.toString(), String(answer.headers['content-type']).split(';')[0]];
  };
  const post = (body: unknown) => send('POST', PATH, typeof body === 'string' ? body : JSON.stringify(body));
  return { ...running, send, post };
}

const WEB = { namespace: 'default', service: 'web', k8sPort: 80, hostPort: 0 };
const QUERY = `${PATH}?namespace=default&service=web&k8sPort=80`;

test('a forward is created, kept, moved and removed with the fixed messages', async () => {
  const { post, send } = await stage();
  const [status, port, type] = await post(WEB);
  expect([status, type]).toEqual([200, 'text/plain']);
  expect(port).toMatch(/^\d+$/);
  expect(await post({ ...WEB, hostPort: Number(port) })).toEqual([200, port, 'text/plain']);
  expect(await post({ ...WEB, k8sPort: '80', hostPort: port })).toEqual([200, port, 'text/plain']);
  const [, moved] = await post(WEB);
  expect(moved).not.toBe(port);
  const list = JSON.parse(String((await send('GET', '/v2/port_forwards'))[1]));
  expect(list).toMatchObject({
    kind: 'PortForwards',
    supported: true,
    portForwards: [{ namespace: 'default', service: 'web', k8sPort: 80, hostPort: Number(moved), state: 'listening' }],
  });
  for (let round = 0; round < 2; round += 1) {
    expect(await send('DELETE', QUERY)).toEqual([200, 'Port forwarding successfully deleted', 'text/plain']);
  }
  expect(JSON.parse(String((await send('GET', '/v2/port_forwards'))[1])).portForwards).toEqual([]);
});

test.each([
  ['', 'error processing JSON request block'],
  ['{', 'error processing JSON request block'],
  ['null', 'error processing JSON request block'],
  ['7', 'error processing JSON request block'],
  ['"x"', 'error processing JSON request block'],
  ['[]', 'missing required parameters'],
  ['{}', 'missing required parameters'],
  [{ namespace: 'default', service: 'web', k8sPort: 80 }, 'missing required parameters'],
  [{ ...WEB, hostPort: 70_000 }, 'Could not forward port: hostPort must be a number from 0 to 65535, not 70000'],
  [{ ...WEB, service: null }, 'Could not forward port: service must be the name of a service, not null'],
])('POST %j is refused', async (body, text) => {
  const { post } = await stage();
  expect(await post(body)).toEqual([400, text, 'text/plain']);
});

test.each([
  ['', 'Port forwarding namespace is required in query parameters'],
  ['?namespace=', 'Port forwarding namespace is required in query parameters'],
  ['?namespace=a', 'Port forwarding service is required in query parameters'],
  ['?namespace=a&service=b', 'Port forwarding k8sPort is required in query parameters'],
  ['?namespace=a&namespace=b', 'Port forwarding service is required in query parameters'],
  ['?namespace=a&namespace=b&service=c&k8sPort=1', 'Invalid port forwarding namespace ["a","b"]: not a string.'],
])('DELETE %s is refused', async (query, text) => {
  const { send } = await stage();
  expect(await send('DELETE', `${PATH}${query}`)).toEqual([400, text, 'text/plain']);
});

test('the fixed messages are followed by the reason: port in use, stopped cluster, unsupported driver', async () => {
  const { post, client, converged } = await stage();
  const other = createServer();
  onTestFinished(() => void other.close());
  await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
  const address = other.address();
  const taken = typeof address === 'object' && address ? address.port : 0;
  const inUse = `Could not forward port: 127.0.0.1:${taken} is in use by another program`;
  expect(await post({ ...WEB, hostPort: taken })).toEqual([400, inUse, 'text/plain']);
  await converged((await client.setBackendState('STOPPED')).generation);
  expect(await post(WEB)).toEqual([400, 'Could not forward port: the cluster is not running', 'text/plain']);
  const api = startApi();
  const answer = await api.client.request({ method: 'POST', path: PATH, body: JSON.stringify(WEB) });
  expect(answer.body.toString()).toBe('Could not forward port: the test driver has no cluster');
});

test('a body that is too long gets 413', async () => {
  const { post } = await stage();
  expect((await post(' '.repeat(4 * 1024 * 1024 + 1)))[0]).toBe(413);
});

test('settings that do not have the expected shape are not trusted', async () => {
  const api = startApi();
  const lying = createClient(api.client.connection, async () => ({
    status: 200,
    statusText: 'OK',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{"version":19,"name":"a package"}'),
  }));
  await expect(lying.settings()).rejects.toMatchObject({ code: 'ERR_CONNECTION' });
});
