import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { restartReasons } from '../../plan/restart-reasons.ts';
import { leaves } from '../../settings/leaf-paths.ts';
import { bytesOf, settingsPayload } from '../body.ts';
import type { ApiContext } from '../context.ts';
import { decideProposal } from '../settings-update.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** `PUT /v1/propose_settings`: what would restart; nothing is changed. Only fields of the proposal are named. */
export function proposalRoutes(app: FastifyInstance, context: ApiContext): void {
  const { store, controllers, driver } = context;
  app.put('/v1/propose_settings', (request, reply) => {
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
