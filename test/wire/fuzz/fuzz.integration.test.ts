import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startService } from '../../helpers/service.ts';
import { fuzz } from './fuzz.ts';

test('random requests get the described answers, and the service keeps running', async () => {
  const { service, client, here, home } = await startService({ power: 'stopped' });
  await fuzz(service.connection, { requests: 1_500, limitMs: 8_000 });
  const { text } = await client.settings();
  expect(JSON.parse(readFileSync(here.settingsFile, 'utf8'))).toEqual(JSON.parse(text));
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  await service.stop('the next one reads what is left');
  expect(readFileSync(join(here.logs, 'service.log'), 'utf8')).not.toContain('request failed unexpectedly');
  const again = await startService({ home, power: 'stopped' });
  expect((await again.client.settings()).text).toBe(text);
});
