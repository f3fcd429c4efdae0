import type { FastifyInstance } from 'fastify';
import { settingLayers } from '../../plan/layers.ts';
import type { ApiContext } from '../context.ts';
import { documented } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

const PROFILE = {
  type: 'object',
  required: ['source', 'version', 'settings'],
  properties: {
    source: { description: 'Path of the file, or the registry key.', type: 'string' },
    version: { description: 'Settings version that it was written for.', type: 'integer' },
    settings: { description: 'What it says, at the newest version.', type: 'object' },
  },
} as const;

const LAYERS = {
  type: 'object',
  required: ['kind', 'formatVersion', 'basis', 'platform', 'builtIn', 'settingsFile', 'looked', 'inForce', 'driver'],
  properties: {
    kind: { const: 'SettingLayers' },
    formatVersion: { const: 1 },
    basis: { enum: ['service', 'files', 'application'] },
    platform: { enum: ['darwin', 'linux', 'win32'] },
    builtIn: { description: 'Settings of a first run on this computer.', type: 'object' },
    settingsFile: { type: 'string' },
    looked: {
      description: 'Places of deployment profiles that were looked at, best first.',
      type: 'array',
      items: { type: 'string' },
    },
    defaultsProfile: PROFILE,
    lockedProfile: PROFILE,
    firstRun: {
      type: 'object',
      required: ['at'],
      properties: { at: { type: 'string' }, defaults: { type: 'string' } },
    },
    inForce: { description: 'What counts now.', type: 'object' },
    stored: { description: 'What the settings file holds.', type: 'object' },
    driver: {
      type: 'object',
      required: ['name', 'simulated', 'support', 'liveFields'],
      properties: {
        name: { type: 'string' },
        simulated: { type: 'boolean' },
        support: { description: 'By dotted path: what the driver does with the setting.', type: 'object' },
        liveFields: { description: 'Applied to what runs.', type: 'array', items: { type: 'string' } },
      },
    },
  },
} as const;

/** `GET /v2/settings/layers`: what every setting would be without the layers above it, and where each layer comes from. */
export function layerRoutes(app: FastifyInstance, { layers, store, driver }: ApiContext): void {
  const doc = documented({
    summary: 'List the layers that the settings in force are made of',
    description: 'Built-in defaults, defaults profile, stored settings, locked profile. Secrets are masked.',
    replies: { 200: { description: 'all layers', body: 'json', schema: LAYERS } },
  });
  app.get('/v2/settings/layers', doc, (_request, reply) => {
    const { settings } = store.snapshot().desired;
    const document = settingLayers(layers, { basis: 'service', inForce: settings, stored: settings, driver });
    reply.type(JSON_TYPE).send(`${JSON.stringify(document, null, 2)}\n`);
  });
}
