import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import type { JsonSchema } from '../../src/api/route-doc.ts';
import { layerRoutes } from '../../src/api/routes/layers.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { startApi } from '../helpers/api.ts';

const SECRET = { experimental: { virtualMachine: { proxy: { password: 'hunter2' } } } };

function stage() {
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  settings.experimental.virtualMachine.proxy.password = 'hunter2';
  const api = startApi({ settings });
  const profile = { source: '/etc/p/locked.json', version: 10, settings: structuredClone(SECRET) };
  Object.assign(api.ports.layers, {
    lockedProfile: profile,
    defaultsProfile: { ...profile, source: '/etc/p/defaults.json' },
    firstRun: { at: '2030-01-01T00:00:00.000Z', defaults: '/etc/p/defaults.json' },
  });
  return api;
}

/** The route's description of its response. */
function schema(): JsonSchema {
  const { ports } = startApi();
  const found: JsonSchema[] = [];
  const app = {
    get(_url: string, { config }: { config: { doc: { replies: Record<number, { schema: JsonSchema }> } } }) {
      found.push(config.doc.replies[200]?.schema ?? {});
    },
  };
  layerRoutes(app as unknown as Parameters<typeof layerRoutes>[0], ports);
  const [only] = found;
  if (!only) throw new Error('the route has no description');
  return only;
}

test('the layers are those of the service, as the route documents them, without secrets', async () => {
  const { client, ports } = stage();
  const { status, body } = await client.request({ method: 'GET', path: '/v2/settings/layers' });
  expect(status).toBe(200);
  const text = body.toString();
  expect(text).not.toContain('hunter2');
  const document = JSON.parse(text);
  const isLayers = new Ajv2020().compile(schema());
  expect(isLayers(document), JSON.stringify(isLayers.errors)).toBe(true);
  expect(document.basis).toBe('service');
  for (const layer of [document.inForce, document.stored, document.lockedProfile.settings]) {
    expect(layer.experimental.virtualMachine.proxy.password).toEqual({ sensitive: true });
  }
  // The service's own values are not masked.
  expect(ports.store.snapshot().desired.settings.experimental.virtualMachine.proxy.password).toBe('hunter2');
});
