import { readdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lifelines } from '../../src/drivers/machines/shared/lifelines.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A program that accepts connections, can die, and comes back at the same address. */
function program() {
  const path = join(temporaryDirectory(), 's');
  const said: string[] = [];
  let clients: Socket[] = [];
  let server: Server | undefined;
  const crash = () =>
    new Promise<void>((resolve) => {
      for (const client of clients) client.destroy();
      clients = [];
      if (!server?.listening) return resolve();
      server.close(() => resolve());
    });
  onTestFinished(crash);
  return {
    path,
    said,
    clients: () => clients.length,
    crash,
    async start() {
      rmSync(path, { force: true });
      server = createServer((client) => {
        clients.push(client);
        client.on('data', (text) => said.push(String(text)));
        client.on('error', () => undefined);
      });
      await new Promise<void>((resolve) => server?.listen(path, resolve));
    },
  };
}

function watched() {
  let time = 0;
  const lines = lifelines({ now: () => time });
  let told = 0;
  const end = lines.watch(() => told++);
  onTestFinished(end);
  return { lines, end, told: () => told, later: (ms: number) => (time += ms) };
}

test('holds one connection to a program, and reports when it ends', async () => {
  const { path, start, crash, clients, said } = program();
  const { lines, told } = watched();
  await start();
  await lines.hold(path, 'hello');
  await lines.hold(path, 'hello');
  await expect.poll(() => said).toEqual(['hello']);
  expect(clients()).toBe(1);
  expect(told()).toBe(0);
  await crash();
  await expect.poll(told).toBe(1);
});

test('does nothing where nothing listens, and holds nothing while nobody watches', async () => {
  const { path, start, clients } = program();
  const { lines, told, end } = watched();
  await lines.hold(path);
  expect(told()).toBe(0);
  await start();
  end();
  await lines.hold(path);
  expect(clients()).toBe(0);
});

test('does not keep reconnecting to a program that closes every connection', async () => {
  const { path, start, crash, clients } = program();
  const { lines, told, later } = watched();
  for (const round of [1, 2, 3]) {
    await start();
    await lines.hold(path);
    await expect.poll(clients).toBe(1);
    await crash();
    await expect.poll(told).toBe(round);
  }
  await start();
  for (let looks = 0; looks < 4; looks++) {
    await lines.hold(path);
    expect(clients()).toBe(0);
    later(1_000);
  }
  later(1_000);
  await lines.hold(path);
  await expect.poll(clients).toBe(1);
});

test('keeps the number of open files constant over many deaths, and releases all of them', async () => {
  const { path, start, crash, clients } = program();
  const { lines, told, later, end } = watched();
  const open = () => readdirSync('/proc/self/fd').length;
  const before = open();
  for (let round = 1; round <= 200; round++) {
    await start();
    await lines.hold(path);
    await expect.poll(clients, { interval: 1 }).toBe(1);
    await crash();
    await expect.poll(told, { interval: 1 }).toBe(round);
    later(1_000);
  }
  await start();
  await lines.hold(path);
  end();
  await expect.poll(() => open() <= before + 1).toBe(true);
  expect(told()).toBe(200);
});
