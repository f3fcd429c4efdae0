import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { expect, onTestFinished, test, vi } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { scriptedServer } from '../helpers/scripted-server.ts';

test('api waits for requests that take minutes, such as a reset', async () => {
  const slow = createServer();
  slow.listen(0, '127.0.0.1');
  await once(slow, 'listening');
  onTestFinished(() => void slow.close());
  await using other = await scriptedServer(() => undefined);
  const address = slow.address();
  const port = typeof address === 'object' && address !== null ? String(address.port) : '';
  const asked = once(slow, 'request');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const call = rdctl(['api', 'k8s_reset', '-X', 'PUT', '-b', '{"mode":"fast"}', '--port', port], { env: other.env });
  const [, response]: ServerResponse[] = await asked;
  vi.advanceTimersByTime(10 * 60_000);
  response?.end('done');
  expect(await call).toEqual({ exit: 0, out: 'done\n', err: '' });
});
