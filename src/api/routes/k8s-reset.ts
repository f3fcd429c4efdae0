import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { bytesOf, parseJson } from '../body.ts';
import type { ApiContext } from '../context.ts';
import { documented } from '../route-doc.ts';
import { TEXT_TYPE, TEXTS } from '../wire-texts.ts';

const RESET_DOC = documented({
  summary: 'Delete the data of the cluster, or everything that the backend keeps',
  description:
    'Answers when the backend is up again, which may take minutes, or off where it was to be off. Without a cluster `fast` is a restart.',
  body: {
    description:
      '`fast` (also when left out) keeps images, containers and volumes; `wipe` keeps nothing but the settings',
    required: true,
    schema: { type: 'object', properties: { mode: { enum: ['fast', 'wipe'] } } },
  },
  replies: {
    200: { description: 'done', body: 'text', example: TEXTS.resetDone.fast },
    400: { description: 'no JSON, or another mode', body: 'text' },
    409: { description: 'a snapshot operation is in progress', body: 'text' },
    502: { description: 'the backend did not stop or did not come up again', body: 'text' },
    503: { description: 'the backend starts or stops; nothing was done', body: 'text' },
  },
});

/** `PUT /v1/k8s_reset` (api facts, 15.3). */
export function k8sResetRoutes(app: FastifyInstance, { resetBackend }: ApiContext): void {
  app.put('/v1/k8s_reset', RESET_DOC, async (request, reply) => {
    const mode = wantedMode(bytesOf(request));
    await resetBackend(mode);
    return reply.type(TEXT_TYPE).send(TEXTS.resetDone[mode]);
  });
}

/** What has no mode means the one that loses less; another one is a mistake that must not delete anything. */
function wantedMode(bytes: Buffer): 'fast' | 'wipe' {
  const value = parseJson(bytes);
  if (!isObject(value) && !Array.isArray(value)) throw new RdError('ERR_BODY_INVALID', TEXTS.notJson);
  const mode = isObject(value) ? value.mode : undefined;
  if (mode === undefined) return 'fast';
  if (mode === 'fast' || mode === 'wipe') return mode;
  throw new RdError('ERR_BODY_INVALID', `invalid reset mode ${JSON.stringify(mode)}`, {
    advice: 'Send {"mode":"fast"} or {"mode":"wipe"}.',
  });
}
