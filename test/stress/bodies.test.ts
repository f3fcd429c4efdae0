import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import type { RdError } from '../../src/errors.ts';
import { residentMemory } from '../helpers/resident-memory.ts';
import { rounds } from '../helpers/rounds.ts';
import { toolHome } from '../helpers/tool-home.ts';

const MEBIBYTE = 1024 * 1024;
const LARGEST = 4 * MEBIBYTE;
/** Connections of each kind at a time. */
const MANY = 200;

/** One request that was started. Its response is kept. */
interface Begun {
  socket: Socket;
  answer(): string;
  closed(): boolean;
}

function begin(port: number, head: readonly string[], body: Buffer | string): Begun {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  let closed = false;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  // A service that closes during the upload resets the connection.
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
  });
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(body);
  onTestFinished(() => void socket.destroy());
  return { socket, answer: () => text, closed: () => closed };
}

test('unfinished, oversized and broken bodies take no memory, and other requests are answered meanwhile', async () => {
  const { home, rdctl, servicePid } = toolHome({ RDCTL_SIMULATED_LATENCY_MS: '0' });
  expect((await rdctl('start', '--driver', 'simulated')).exit).toBe(0);
  const pid = servicePid();
  const { port, user, password } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  const client = createClient({
    host: '127.0.0.1',
    port,
    user,
    password,
    foreign: false,
    reached: { by: 'word' },
  } as const);
  const own = `Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const strange = `Authorization: Basic ${Buffer.from(`${user}:wrong`).toString('base64')}`;
  const head = (who: string, ...more: string[]) => ['PUT /v1/settings HTTP/1.1', 'Host: 127.0.0.1', who, ...more];
  const before = (await client.settings()).text;

  // The cost of the largest bodies, one after the other, is the reference.
  const whole = `{"version":19,"x":"${'x'.repeat(LARGEST - 100)}"}`;
  for (let round = 0; round < 20; round += 1) {
    expect((await client.request({ method: 'PUT', path: '/v1/settings', body: whole })).status).toBe(202);
  }
  const reference = residentMemory(pid);
  const mostOf = 64 * LARGEST;
  let peak = reference;
  let answers = 0;
  const answered = async () => {
    expect((await client.request({ method: 'GET', path: '/v1/settings' })).status).toBe(200);
    answers += 1;
    peak = Math.max(peak, residentMemory(pid));
  };
  const drained = (all: readonly Begun[]) => all.every(({ socket, closed }) => closed() || socket.writableLength === 0);
  const part = Buffer.alloc(LARGEST - 1, ' ');

  for (let round = 0; round < rounds(2, 40); round += 1) {
    const unfinished = Array.from({ length: MANY }, () => begin(port, head(own, `Content-Length: ${LARGEST}`), part));
    while (!drained(unfinished)) await answered();
    expect(unfinished.filter(({ closed }) => closed()).length).toBeLessThan(MANY);
    // What was read and dropped is garbage by now, which a busy computer collects late.
    const held = async () => {
      await answered();
      return residentMemory(pid) - reference;
    };
    await expect.poll(held, { timeout: 20_000 }).toBeLessThan(32 * LARGEST);

    const strangers = Array.from({ length: MANY }, () =>
      begin(port, head(strange, `Content-Length: ${LARGEST}`), part),
    );
    const chunked = Array.from({ length: MANY / 4 }, () =>
      begin(port, head(strange, 'Transfer-Encoding: chunked'), `FFFFFF\r\n${'x'.repeat(10_000)}`),
    );
    const garbage = Array.from({ length: MANY / 4 }, () =>
      begin(port, head(own, 'Transfer-Encoding: chunked'), 'not a length\r\nxx\r\n'),
    );
    // An unauthenticated client is not waited for, and its body is not read.
    const refused = [...strangers, ...chunked, ...garbage];
    while (!refused.every(({ closed }) => closed())) await answered();
    for (const { answer } of chunked) expect(answer()).toMatch(/^HTTP\/1\.1 401 |^$/);
    for (const { answer } of garbage) expect(answer()).toMatch(/^HTTP\/1\.1 400 |^$/);

    const small = await client.request({ method: 'PUT', path: '/v1/settings', body: '{"version":19}' });
    expect(small.status).toBe(202);
    for (const { socket } of unfinished) socket.destroy();
    // A client that still sends when it is refused may see the closed connection before the reply.
    const sent = () => client.request({ method: 'PUT', path: '/v1/settings', body: whole });
    await vi.waitUntil(async () => {
      const { status } = await sent().catch((error: RdError) => {
        if (error.code !== 'ERR_CONNECTION') throw error;
        return { status: 0 };
      });
      return status === 202;
    });
  }
  expect(answers).toBeGreaterThan(rounds(2, 40));
  expect(peak - reference, `${peak} bytes, and ${reference} before`).toBeLessThan(mostOf);
  expect(servicePid()).toBe(pid);
  expect((await client.settings()).text).toBe(before);
});
