import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { startService } from '../helpers/service.ts';
import { exchange } from './raw.ts';

const PUTS = 200;

/** A change of every boolean that can be changed alone here, plus enough map entries. */
function writes(): { payload: JsonObject; holds: (settings: JsonObject) => boolean }[] {
  const alone: Record<string, JsonValue> = {
    'application.debug': true,
    'application.autoStart': true,
    'application.startInBackground': true,
    'application.hideNotificationIcon': true,
    'application.window.quitOnClose': true,
    'application.theme': 'dark',
    'application.locale': 'de',
    'kubernetes.port': 6500,
    'kubernetes.options.traefik': false,
    'kubernetes.options.flannel': false,
    'images.showAll': false,
    'images.namespace': 'other',
    'containers.showAll': false,
    'containers.namespace': 'another',
    'portForwarding.includeKubernetesServices': true,
    'diagnostics.showMuted': true,
    'diagnostics.connectivity.interval': 0,
    'diagnostics.connectivity.timeout': 7000,
    'virtualMachine.numberCPUs': 3,
    'virtualMachine.memoryInGB': 3,
  };
  const fields = FIELDS.filter(({ path }) => path in alone).map(({ path }) => {
    const payload: JsonObject = { version: 19 };
    setLeaf(payload, path, alone[path] ?? null);
    return { payload, holds: (settings: JsonObject) => leafAt(settings, path) === alone[path] };
  });
  expect(fields).toHaveLength(Object.keys(alone).length);
  const entries = Array.from({ length: PUTS - fields.length }, (_, index) => ({
    payload: { version: 19, diagnostics: { mutedChecks: { [`CHECK_${index}`]: true } } },
    holds: (settings: JsonObject) => JSON.stringify(settings).includes(`"CHECK_${index}":true`),
  }));
  return [...fields, ...entries];
}

test('200 concurrent writes of different fields are all kept', async () => {
  const { service, client, here, home } = await startService({ power: 'stopped' });
  const before = (await client.status()).generation;
  const all = writes();
  expect(all).toHaveLength(PUTS);
  const answers = await Promise.all(
    all.map(({ payload }) =>
      exchange(service.connection, { method: 'PUT', target: '/v1/settings', body: JSON.stringify(payload) }),
    ),
  );
  expect(new Set(answers.map(({ status, body }) => `${status} ${body}`))).toEqual(
    new Set(['202 settings updated; no restart required']),
  );
  const generations = answers.map(({ headers }) => Number(headers['rdctl-generation']));
  expect(new Set(generations).size).toBe(PUTS);
  expect(Math.max(...generations)).toBe(before + PUTS);
  const { settings, text } = await client.settings();
  expect(all.filter(({ holds }) => !holds(settings))).toEqual([]);
  expect(JSON.parse(readFileSync(here.settingsFile, 'utf8'))).toEqual(settings);
  await service.stop('the next one reads what was kept');
  expect((await (await startService({ home })).client.settings()).text).toBe(text);
});

test('of many concurrent writes with the same If-Match exactly one succeeds', async () => {
  const { service, client } = await startService({ power: 'stopped' });
  const { etag = '' } = await client.settings();
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      exchange(service.connection, {
        method: 'PUT',
        target: '/v1/settings',
        headers: { 'If-Match': etag },
        body: JSON.stringify({ version: 19, kubernetes: { port: 7000 + index } }),
      }),
    ),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array(39).fill(412)]);
});
