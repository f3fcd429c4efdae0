import type { FastifyInstance, FastifyReply } from 'fastify';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import type { PlanRequest } from '../../plan/change.ts';
import type { ApiContext } from '../context.ts';
import { checkedRequest, PLAN_REQUEST, planOf } from '../planning.ts';
import { documented, schemaOf } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** Milliseconds that a plan waits for a look, as while a step is under way: where the caller says nothing, and at most. */
const USUAL_WAIT = 3_000;
const LONGEST_WAIT = 600_000;

const DOC = documented({
  summary: 'What a desired state would change here, at what cost',
  description:
    'Changes nothing. Locked fields and fields that the driver cannot give effect to are changes with `blocked`, not errors.',
  query: {
    waitMs: {
      description: `How long to wait for a look at what runs, in milliseconds up to ${LONGEST_WAIT}; ${USUAL_WAIT} where it is missing`,
    },
  },
  body: { description: 'The desired state', required: true, schema: PLAN_REQUEST },
  replies: {
    200: { description: 'the plan', body: 'json', schema: schemaOf('Plan') },
    400: {
      description: 'a malformed request or bad settings, each with its pointer',
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
    { ...DOC, schema: { body: PLAN_REQUEST } },
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
  throw new RdError('ERR_BODY_INVALID', `waitMs is a number of milliseconds between 0 and ${LONGEST_WAIT}`);
}

/** Aborted when nobody waits for the answer any more. */
function gone({ raw }: FastifyReply): AbortSignal {
  const left = new AbortController();
  raw.once('close', () => left.abort());
  return left.signal;
}
