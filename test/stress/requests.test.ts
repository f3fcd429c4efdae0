import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { residentMemory } from '../helpers/resident-memory.ts';
import { rounds } from '../helpers/rounds.ts';
import { toolHome } from '../helpers/tool-home.ts';
import { fuzz } from '../wire/fuzz/fuzz.ts';

/** Milliseconds: a request takes about three. */
const LIMIT = rounds(40_000, 1_800_000);

test('after random requests the built service still answers, with valid settings and no memory growth', async () => {
  const { home, rdctl, servicePid } = toolHome({ RDCTL_SIMULATED_LATENCY_MS: '0' });
  expect((await rdctl('start', '--driver', 'simulated', '--no-modal-dialogs')).exit).toBe(0);
  expect((await rdctl('api', 'transient_settings')).out).toContain('"noModalDialogs": true');
  const pid = servicePid();
  const { port, user, password } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  const connection = { host: '127.0.0.1', port, user, password, foreign: false, reached: { by: 'word' } } as const;
  // A service that has answered all kinds of requests is the reference.
  await fuzz(connection, { requests: rounds(2_000, 20_000), limitMs: LIMIT });
  const reference = residentMemory(pid);
  await fuzz(connection, { requests: rounds(8_000, 80_000), limitMs: LIMIT });
  expect(servicePid()).toBe(pid);
  expect(residentMemory(pid)).toBeLessThan(1.25 * reference + 32 * 1024 * 1024);
  const { text } = await createClient(connection).settings();
  expect(JSON.parse(readFileSync(join(home, 'config', 'settings.json'), 'utf8'))).toEqual(JSON.parse(text));
  expect(readFileSync(join(home, 'logs', 'service.log'), 'utf8')).not.toContain('request failed unexpectedly');
  expect((await rdctl('shutdown')).exit).toBe(0);
  expect((await rdctl('start')).exit).toBe(0);
  expect((await rdctl('list-settings')).out).toBe(`${text}\n`);
});
