import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { toolHome } from '../helpers/tool-home.ts';
import { fuzz } from '../wire/fuzz/fuzz.ts';

const MINUTE = 60_000;

test('a minute of random requests leaves the built service as it was: answering, with valid settings', async () => {
  const { home, rdctl, servicePid } = toolHome({ RDCTL_SIMULATED_LATENCY_MS: '0' });
  expect((await rdctl('start', '--driver', 'simulated', '--no-modal-dialogs')).exit).toBe(0);
  expect((await rdctl('api', 'transient_settings')).out).toContain('"noModalDialogs": true');
  const pid = servicePid();
  const { port, user, password } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  const connection = { host: '127.0.0.1', port, user, password, foreign: false };
  await fuzz(connection, { requests: 1_000_000, limitMs: MINUTE });
  expect(servicePid()).toBe(pid);
  const { text } = await createClient(connection).settings();
  expect(JSON.parse(readFileSync(join(home, 'config', 'settings.json'), 'utf8'))).toEqual(JSON.parse(text));
  expect(readFileSync(join(home, 'logs', 'service.log'), 'utf8')).not.toContain('request failed unexpectedly');
  expect((await rdctl('shutdown')).exit).toBe(0);
  expect((await rdctl('start')).exit).toBe(0);
  expect((await rdctl('list-settings')).out).toBe(`${text}\n`);
});
