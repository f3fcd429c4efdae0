import { readdirSync, readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../helpers/service.ts';

/** Requests of a flood, and how many of them at a time. */
const MANY = 4_000;
const ABREAST = 20;

/** Sends requests without credentials, and returns the statuses that were answered. */
async function flood(port: number, path: string): Promise<Set<number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: ABREAST });
  onTestFinished(() => agent.destroy());
  const statuses = new Set<number>();
  const ask = () =>
    new Promise<void>((done, fail) => {
      const request = get({ host: '127.0.0.1', port, path, agent }, (response) => {
        statuses.add(response.statusCode ?? 0);
        response.resume().once('end', done);
      });
      request.once('error', fail);
    });
  for (let sent = 0; sent < MANY; sent += ABREAST) await Promise.all(Array.from({ length: ABREAST }, ask));
  return statuses;
}

test('a flood of refused requests leaves the log small, with its first lines and the last one', async () => {
  const { service, here } = await startService({ power: 'stopped', settings: { application: { debug: true } } });
  const log = () => readFileSync(join(here.logs, 'service.log'), 'utf8').trim().split('\n');
  const refused = () => log().filter((line) => line.includes('request refused'));
  const { port } = service.connection;
  expect(await flood(port, '/v1/settings')).toEqual(new Set([401]));
  expect(await flood(port, '/v2/proof?nonce=5')).toEqual(new Set([400]));
  expect(refused().length).toBe(2 * 5);
  await service.stop('the flood is over');
  expect(readdirSync(here.logs).filter((name) => name.startsWith('service.') && name !== 'service.log')).toEqual([]);
  const lines = log();
  expect(lines.join('\n').length).toBeLessThan(100_000);
  expect(lines.some((line) => line.includes('"msg":"service started"'))).toBe(true);
  const counts = refused()
    .slice(2 * 5)
    .map((line) => JSON.parse(line));
  expect(counts).toEqual([
    expect.objectContaining({ code: 'ERR_UNAUTHORIZED', path: '/v1/settings', more: MANY - 5 }),
    expect.objectContaining({ code: 'ERR_BODY_INVALID', path: '/v2/proof', more: MANY - 5 }),
  ]);
  expect(lines.map((line) => JSON.parse(line)).filter(({ level, error }) => level >= 50 || error)).toEqual([]);
});
