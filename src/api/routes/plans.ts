import type { FastifyInstance, FastifyReply } from 'fastify';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { refuseBlocked } from '../../plan/blocks.ts';
import type { Plan, PlanRequest } from '../../plan/change.ts';
import { patchOf } from '../../plan/diff.ts';
import { decideUpdate } from '../../plan/settings-update.ts';
import type { Desired } from '../../reconcile/contract.ts';
import type { ApplyReply } from '../../reconcile/status-document.ts';
import type { ApiContext, ReservedSteps } from '../context.ts';
import { checkedRequest, PLAN_REQUEST, planOf } from '../planning.ts';
import { documented, schemaOf } from '../route-doc.ts';
import { JSON_TYPE, TEXTS } from '../wire-texts.ts';

/** Milliseconds that a plan waits for a look, as while a step is under way: where the caller says nothing, and at most. */
const USUAL_WAIT = 3_000;
const LONGEST_WAIT = 600_000;

const PLAN_DOC = documented({
  summary: 'Plan the changes that reach a desired state, with their cost',
  description:
    'Changes nothing. Locked fields and fields that the driver does not support are changes with `blocked`, not errors.',
  query: {
    waitMs: {
      description: `How long to wait for an observation of the backend, in milliseconds, up to ${LONGEST_WAIT}; the default is ${USUAL_WAIT}`,
    },
  },
  body: { description: 'The desired state', required: true, schema: PLAN_REQUEST },
  replies: {
    200: { description: 'the plan', body: 'json', schema: schemaOf('Plan') },
    400: {
      description: 'a malformed request or invalid settings, each with its pointer',
      body: 'json',
      schema: schemaOf('Error'),
    },
  },
});

/** `POST /v2/plan`: what a desired state would change here, at what cost. Changes nothing. */
export function planRoutes(app: FastifyInstance, context: ApiContext): void {
  const { controllers } = context;
  app.post<{ Body: PlanRequest }>(
    '/v2/plan',
    { ...PLAN_DOC, schema: { body: PLAN_REQUEST } },
    async ({ body, query }, reply) => {
      const limit = AbortSignal.timeout(waitOf(query));
      const request = checkedRequest(body, context);
      // A container that was started a second ago is at stake, too.
      const looked = await controllers.look(AbortSignal.any([limit, gone(reply)]), 'until it succeeds');
      const userFiles = await context.userFiles();
      const plan = planOf(request, context, { outdated: !looked, ...(userFiles ? { userFiles } : {}) });
      return reply.type(JSON_TYPE).send(`${JSON.stringify(plan, null, 2)}\n`);
    },
  );
}

/** @throws RdError `ERR_BODY_INVALID` for anything but a number of milliseconds, once. */
function waitOf(query: unknown): number {
  const given: unknown = isObject(query) ? query.waitMs : undefined;
  if (given === undefined) return USUAL_WAIT;
  const ms = typeof given === 'string' && /^\d{1,6}$/.test(given) ? Number(given) : Number.NaN;
  if (ms <= LONGEST_WAIT) return ms;
  throw new RdError('ERR_BODY_INVALID', `waitMs must be a number of milliseconds from 0 to ${LONGEST_WAIT}`);
}

/** Aborted when nobody waits for the answer any more. */
function gone({ raw }: FastifyReply): AbortSignal {
  const left = new AbortController();
  raw.once('close', () => left.abort());
  return left.signal;
}

const BODY = {
  ...PLAN_REQUEST,
  required: [...PLAN_REQUEST.required, 'tag'],
  properties: { ...PLAN_REQUEST.properties, tag: { type: 'string' } },
} as const;

const REPLY = {
  type: 'object',
  required: ['kind', 'formatVersion', 'generation', 'sent', 'continues'],
  properties: {
    kind: { const: 'ApplyReply' },
    formatVersion: { const: 1 },
    generation: { description: 'Version of the desired state after this write.', type: 'integer' },
    sent: {
      description: 'What was written; `retry`: nothing differed, and a failed backend is retried.',
      type: 'array',
      items: { enum: ['settings', 'power', 'retry'] },
    },
    continues: { description: 'Port forwards and extensions follow; see `apply` in the status.', type: 'boolean' },
  },
} as const;

const APPLY_DOC = documented({
  summary: 'Apply a plan',
  description:
    'Takes the body of `POST /v2/plan` and the `tag` of its plan. Settings and power state are written immediately, as one version of the desired state; port forwards and extensions follow, even if the client disconnects.',
  body: { description: 'The desired state, and the tag', required: true, schema: BODY },
  replies: {
    202: { description: 'it is written; wait for the generation', body: 'json', schema: REPLY },
    400: {
      description: 'a malformed request, invalid settings, or blocked changes',
      body: 'json',
      schema: schemaOf('Error'),
    },
    409: {
      description: 'the plan is stale, or an earlier apply is still running; nothing was changed',
      body: 'json',
      schema: schemaOf('Error'),
    },
  },
});

/** `POST /v2/apply`: carries out a plan that was agreed to. */
export function applyRoutes(app: FastifyInstance, context: ApiContext): void {
  const { store, applies, controllers, counters, log } = context;
  app.post<{ Body: PlanRequest & { tag: string } }>(
    '/v2/apply',
    { ...APPLY_DOC, schema: { body: BODY } },
    async ({ body }, reply) => {
      const { tag, ...asked } = body;
      const request = checkedRequest(asked, context);
      let steps: ReservedSteps | undefined;
      const { answer, now } = await store
        .write(({ desired }) => {
          const plan = planOf(request, context, { desired });
          steps = applies.reserve(plan, request);
          if (plan.tag !== tag) {
            throw new RdError('ERR_PLAN_STALE', 'the plan is stale; nothing was changed', {
              advice: 'Plan again and review the changes.',
            });
          }
          refuseBlocked(plan);
          const next = nextState(plan, request, desired, context);
          const sent: ApplyReply['sent'] = [];
          if (next.settings !== desired.settings) sent.push('settings');
          if (next.power !== desired.power) sent.push('power');
          // Nothing differs, and an earlier attempt was given up. Its cause may be gone.
          const gaveUp = next.power === 'started' && controllers.status().backendState === 'ERROR';
          if (sent.length === 0 && gaveUp) sent.push('retry');
          return { ...(sent.length > 0 ? { next } : {}), answer: { plan, sent } };
        })
        .catch((error: unknown) => {
          steps?.release();
          throw error;
        });
      const { plan, sent } = answer;
      const { generation } = now.desired;
      if (sent.includes('settings')) counters.settingsWrites += 1;
      const changes = plan.changes.map(({ path, key }) => (key === undefined ? path : `${path}[${key}]`));
      log('info', 'applied', { changes, sent, generation });
      steps?.begin(generation);
      const continues = steps !== undefined;
      const document: ApplyReply = { kind: 'ApplyReply', formatVersion: 1, generation, sent, continues };
      return reply
        .code(202)
        .type(JSON_TYPE)
        .send(`${JSON.stringify(document, null, 2)}\n`);
    },
  );
}

/** Settings and power as planned; the very same objects where they stay. */
function nextState(
  plan: Plan,
  request: PlanRequest,
  { settings, power }: Desired,
  context: ApiContext,
): Omit<Desired, 'generation'> {
  const powerAfter = request.state === 'unmanaged' ? power : request.state;
  const patch = patchOf(plan, request, settings);
  if (!patch) return { settings, power: powerAfter };
  const update = decideUpdate(patch, settings, { ...context, locks: context.store.locks });
  if (update.kind === 'refused')
    throw new RdError('ERR_SETTINGS_INVALID', [TEXTS.updateErrors, ...update.problems].join('\n'));
  return { settings: update.kind === 'changed' ? update.settings : settings, power: powerAfter };
}
