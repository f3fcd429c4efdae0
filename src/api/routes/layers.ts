import type { FastifyInstance } from 'fastify';
import type { DriverInfo } from '../../drivers/driver.ts';
import { indentedJson } from '../../json.ts';
import { type LayerFacts, settingLayers } from '../../plan/layers.ts';
import { BLOCK_NAMES } from '../../settings/blocks.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import { withDoc } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

const PROFILE = {
  type: 'object',
  required: ['source', 'version', 'settings'],
  properties: {
    source: { description: 'Path of the file, or the registry key.', type: 'string' },
    version: { description: 'Settings version of the profile.', type: 'integer' },
    settings: { description: 'Its settings, migrated to the newest version.', type: 'object' },
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
      description: 'Locations of deployment profiles that were checked, highest precedence first.',
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
    stored: { description: 'Content of the settings file.', type: 'object' },
    ...Object.fromEntries(
      BLOCK_NAMES.map((name) => [
        name,
        { description: `The \`${name}\` block of profiles, as it counts now.`, type: 'object' },
      ]),
    ),
    driver: {
      type: 'object',
      required: ['name', 'simulated', 'support', 'liveFields'],
      properties: {
        name: { type: 'string' },
        simulated: { type: 'boolean' },
        support: { description: 'By dotted path: how the driver supports the setting.', type: 'object' },
        liveFields: { description: 'Applied to what runs.', type: 'array', items: { type: 'string' } },
      },
    },
  },
} as const;

/** The port of the layers route. */
export interface LayersPort {
  layers: LayerFacts;
  store: Pick<DesiredStore, 'snapshot'>;
  driver: DriverInfo;
}

/** Registers `GET /v2/settings/layers`: the layers of all settings, and the source of each. */
export function layerRoutes(app: FastifyInstance, { layers, store, driver }: LayersPort): void {
  const doc = withDoc({
    scope: 'read',
    summary: 'List the layers of the effective settings',
    description: 'Built-in defaults, defaults profile, stored settings, locked profile. Secrets are masked.',
    replies: { 200: { description: 'all layers', body: 'json', schema: LAYERS } },
  });
  app.get('/v2/settings/layers', doc, (_request, reply) => {
    const { desired } = store.snapshot();
    const { settings } = desired;
    const document = settingLayers(layers, {
      ...desired,
      basis: 'service',
      inForce: settings,
      stored: settings,
      driver,
    });
    reply.type(JSON_TYPE).send(indentedJson(document));
  });
}
