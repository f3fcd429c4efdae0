import { connect } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createApp } from '../../src/api/app.ts';
import { bindListener } from '../../src/service/listener.ts';
import { startApi } from '../helpers/api.ts';
import { freePort } from '../helpers/free-port.ts';

test('connections that never finish a head are closed as a whole, also where the client keeps its side open', async () => {
  const listener = await bindListener(await freePort(), { head: 50, check: 20 });
  const app = createApp(startApi().ports, listener.server);
  await app.ready();
  onTestFinished(() => listener.close());
  const heads = ['GET /v2/status HTTP/1.1\r\nHost: 127.0', 'GET /v2/status HTTP/1.1\r\n', 'no request at all\r\n\r\n'];
  const answers = heads.map(() => '');
  for (const [index, head] of heads.entries()) {
    const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      answers[index] += data.toString();
    });
    socket.write(head);
    onTestFinished(() => void socket.destroy());
  }
  await vi.waitUntil(() => answers.every((answer) => answer !== ''));
  const open = () => new Promise((counted) => listener.server.getConnections((_error, count) => counted(count)));
  await vi.waitFor(async () => expect(await open()).toBe(0), { timeout: 10_000 });
  expect(answers.map((answer) => answer.split(' ', 2)[1])).toEqual(['408', '408', '400']);
});
