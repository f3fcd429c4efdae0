import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { restartReasons } from '../../plan/restart-reasons.ts';
import { leaves } from '../../settings/leaf-paths.ts';
import { bytesOf, settingsPayload } from '../body.ts';
import type { ApiContext } from '../context.ts';
import { documented, schemaOf } from '../route-doc.ts';
import { decideProposal } from '../settings-update.ts';
import { JSON_TYPE, TEXTS } from '../wire-texts.ts';

const DOC = documented({
  summary: 'Which fields of a proposal would restart the backend or destroy cluster data',
  description: 'Changes nothing. No `version` is needed; shapes of older versions are not migrated.',
  body: { description: 'Any part of the settings', required: true, schema: schemaOf('SettingsPart') },
  replies: {
    200: {
      description: 'the proposal is valid; only fields of it are named',
      body: 'json',
      schema: {
        type: 'object',
        additionalProperties: {
          type: 'object',
          required: ['severity', 'desired'],
          properties: {
            current: { description: 'What runs with it.' },
            desired: { description: 'What was proposed.' },
            severity: { enum: ['restart', 'reset'] },
          },
        },
      },
      example: { 'containerEngine.name': { current: 'moby', desired: 'containerd', severity: 'restart' } },
    },
    400: {
      description: 'no settings, or bad ones: a heading and a line each',
      body: 'text',
      example: TEXTS.noSettings,
    },
  },
});

/** `PUT /v1/propose_settings`: what would restart; nothing is changed. Only fields of the proposal are named. */
export function proposalRoutes(app: FastifyInstance, context: ApiContext): void {
  const { store, controllers, driver } = context;
  app.put('/v1/propose_settings', DOC, (request, reply) => {
    const payload = settingsPayload(bytesOf(request));
    const current = store.snapshot().desired.settings;
    const update = decideProposal(payload, current, { ...context, locks: store.locks });
    if (update.kind === 'refused') throw new RdError('ERR_SETTINGS_INVALID', update.message);
    const settings = update.kind === 'changed' ? update.settings : current;
    const named = new Set<string>(leaves(payload).map(([path]) => path));
    const reasons = Object.entries(restartReasons(settings, controllers.observed(), driver, current));
    reply.type(JSON_TYPE).send(JSON.stringify(Object.fromEntries(reasons.filter(([path]) => named.has(path)))));
  });
}
