import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import type { BackendState, Power } from '../../reconcile/status.ts';
import { bytesOf, parseJson } from '../body.ts';
import type { ApiContext } from '../context.ts';
import { documented } from '../route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

const STATES = ['STOPPED', 'STARTING', 'STARTED', 'STOPPING', 'ERROR', 'DISABLED'] as const satisfies BackendState[];
const GET_DOC = documented({
  summary: 'What the backend is doing',
  replies: {
    200: {
      description: 'always',
      body: 'json',
      schema: {
        type: 'object',
        required: ['vmState', 'locked'],
        additionalProperties: false,
        properties: {
          vmState: { description: 'STARTED or DISABLED (no cluster): the engine runs.', enum: STATES },
          locked: { description: 'An operation on snapshots keeps the backend still.', type: 'boolean' },
        },
      },
      example: { vmState: 'STARTED', locked: false },
    },
  },
});
const PUT_DOC = documented({
  summary: 'Say whether the backend is wanted',
  description:
    'Answers at once; the wish is kept over restarts of the service. Poll the state, or wait for the generation.',
  body: {
    description: 'The wish; the member `locked` is accepted and has no effect',
    required: true,
    schema: {
      type: 'object',
      required: ['vmState'],
      properties: { vmState: { enum: ['STARTED', 'STOPPED'] }, locked: { type: 'boolean' } },
    },
  },
  replies: {
    202: {
      description: 'the wish is kept',
      body: 'text',
      example: TEXTS.backendState,
      headers: { 'Rdctl-Generation': 'Version of the desired state after this write' },
    },
    400: { description: 'another state, or no JSON', body: 'text' },
    503: { description: 'the service is shutting down', body: 'text' },
  },
});

const POWERS: ReadonlyMap<unknown, Power> = new Map([
  ['STARTED', 'started'],
  ['STOPPED', 'stopped'],
]);

/** `/v1/backend_state`: what the backend is doing, and the wish for it to run or not. */
export function backendStateRoutes(app: FastifyInstance, context: ApiContext): void {
  const { controllers, store, log } = context;
  app.get('/v1/backend_state', GET_DOC, async (_request, reply) => {
    const vmState = controllers.status().backendState;
    return reply.type(JSON_TYPE).send(JSON.stringify({ vmState, locked: await context.isBackendLocked() }));
  });

  app.put('/v1/backend_state', PUT_DOC, async (request, reply) => {
    const power = wantedPower(bytesOf(request));
    const { now } = await store.write(({ desired }) => {
      // Asking again for a start that failed is a new wish: the generation grows, and with it ends the terminal error.
      const retry = power === 'started' && controllers.status().backendState === 'ERROR';
      if (desired.power === power && !retry) return { answer: undefined };
      return { next: { settings: desired.settings, power }, answer: undefined };
    });
    log('info', 'backend state requested', { power, generation: now.desired.generation });
    return reply
      .code(202)
      .header('Rdctl-Generation', String(now.desired.generation))
      .type(TEXT_TYPE)
      .send(TEXTS.backendState);
  });
}

/** The member `locked`, which the snapshot code of the compatible tool sends, has no effect there and none here. */
function wantedPower(bytes: Buffer): Power {
  const value = parseJson(bytes);
  const state = isObject(value) ? value.vmState : undefined;
  const power = POWERS.get(state);
  if (power) return power;
  throw new RdError(
    'ERR_BODY_INVALID',
    `invalid desired VM state "${typeof state === 'string' ? state : JSON.stringify(state)}"`,
    {
      advice: 'Send {"vmState":"STARTED"} or {"vmState":"STOPPED"}.',
    },
  );
}
