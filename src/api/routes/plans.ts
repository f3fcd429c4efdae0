import type { FastifyInstance, FastifyReply } from 'fastify';
import { RdError } from '../../errors.ts';
import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import { defined, indentedJson, isObject } from '../../json.ts';
import type { ApplyOptions, ApplyReply, PlanOptions } from '../../plan/apply.gen.ts';
import type { LiveState, PlanRequest } from '../../plan/change.ts';
import type { Author } from '../../plan/history.ts';
import { settingsWithoutSecrets } from '../../plan/secrets.ts';
import type { Controllers } from '../../reconcile/contract.ts';
import type { Planner } from '../../service/planner.ts';
import type { Watch } from '../../service/watch/watch.ts';
import { callerOf } from '../author.ts';
import { definitionOf, mergeSchemas } from '../document-schemas.ts';
import { keepOf, windowOf } from '../keep.ts';
import { createPlanTurns } from '../plan-turns.ts';
import { schemaOf, withDoc } from '../route-doc.ts';
import type { TokenHolder } from '../token-guard.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** Milliseconds that a plan waits for an observation: the default and the maximum. */
const USUAL_WAIT = 3_000;
const LONGEST_WAIT = 600_000;

const PLAN_REQUEST = definitionOf('Plan', 'request');
const PLAN_BODY = mergeSchemas(PLAN_REQUEST, definitionOf('Apply', 'planOptions'));
const APPLY_BODY = mergeSchemas(PLAN_REQUEST, definitionOf('Apply', 'applyOptions'));

const PLAN_DOC = withDoc({
  scope: 'plan',
  summary: 'Plan the changes that reach a desired state, with their cost',
  description:
    'Changes nothing. Locked fields, fields that the driver does not support and those that a kept profile would set back at once are changes with `blocked`, not errors.',
  query: {
    waitMs: {
      description: `How long to wait for an observation of the backend, in milliseconds, up to ${LONGEST_WAIT}; the default is ${USUAL_WAIT}`,
    },
    live: {
      description:
        '`true` adds `live` to the plan: the settings, locks, power state and port forwards that it was compared with',
    },
  },
  body: { description: 'The desired state', required: true, schema: PLAN_BODY },
  replies: {
    200: { description: 'the plan', body: 'json', schema: schemaOf('Plan') },
    400: {
      description: 'a malformed request or invalid settings, each with its pointer',
      body: 'json',
      schema: schemaOf('Error'),
    },
    429: { description: 'too many plans of this caller at a time', body: 'json', schema: schemaOf('Error') },
  },
});

/** The port of the plan and apply routes. */
export interface PlansPort {
  controllers: Pick<Controllers, 'look' | 'waitingFor'>;
  planner: Pick<Planner, 'check' | 'warnings' | 'planFor' | 'live' | 'withSafetySnapshot' | 'write'>;
  watch: Pick<Watch, 'plan' | 'apply'>;
  userFiles: Pick<FollowingIntegration, 'userFiles' | 'retry'>;
}

/** Registers `POST /v2/plan`: the changes that a desired state would make here, and their costs. Changes nothing. */
export function planRoutes(app: FastifyInstance, { controllers, planner, watch, userFiles }: PlansPort): void {
  const turns = createPlanTurns();
  app.post<{ Body: PlanRequest & PlanOptions }>(
    '/v2/plan',
    { ...PLAN_DOC, schema: { body: PLAN_BODY } },
    async (call, reply) => {
      const { maintenance, how = 'apply', kept, ...body } = call.body;
      const { query, token } = call;
      const limit = AbortSignal.timeout(waitOf(query));
      const gone = signalOfDisconnect(reply);
      const window = maintenance && windowOf(maintenance);
      const text = await turns.admit(token?.name, async (turn) => {
        const request = await turn(() => planner.check(body));
        // A turn for the warnings alone: parsing a long list takes as long as the rest of the plan, which then finds it parsed.
        await turn(() => planner.warnings(request));
        // Observes afresh, so that the plan counts a container that was started a second ago.
        const looked = await controllers.look(AbortSignal.any([limit, gone]), 'until it succeeds');
        const outdated = controllers.waitingFor() ?? 'the driver did not answer';
        const files = await userFiles.userFiles();
        const facts = { ...(looked ? {} : { outdated }), ...(files ? { userFiles: files } : {}) };
        const writer = { by: { how, ...callerOf(call) }, ...defined({ kept }) };
        const withLive = isObject(query) && query.live === 'true';
        // One turn without an await, so that the plan and the live state are of the same moment.
        const { plan, live } = await turn(() => ({
          plan: watch.plan(planner.planFor(request, writer, facts), window),
          live: withLive ? { live: liveState(planner.live(), token) } : {},
        }));
        const complete = await planner.withSafetySnapshot(plan, request, how);
        return turn(() => indentedJson({ ...complete, ...live }));
      });
      return reply.type(JSON_TYPE).send(text);
    },
  );
}

/** Returns the live state, without secrets for tokens. */
function liveState(live: LiveState, token: TokenHolder | undefined): LiveState {
  return token ? { ...live, settings: settingsWithoutSecrets(live.settings) } : live;
}

/** Parses the wait in milliseconds. @throws RdError `ERR_BODY_INVALID` unless it is a number, given once. */
function waitOf(query: unknown): number {
  const given: unknown = isObject(query) ? query.waitMs : undefined;
  if (given === undefined) return USUAL_WAIT;
  const ms = typeof given === 'string' && /^\d{1,6}$/.test(given) ? Number(given) : Number.NaN;
  if (ms <= LONGEST_WAIT) return ms;
  throw new RdError('ERR_BODY_INVALID', `waitMs must be a number of milliseconds from 0 to ${LONGEST_WAIT}`);
}

/** Returns a signal that aborts when the client disconnects, and after the reply. */
function signalOfDisconnect({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController();
  raw.once('close', () => closed.abort());
  return closed.signal;
}

const APPLY_DOC = withDoc({
  scope: 'write',
  summary: 'Apply a plan',
  description:
    'Takes the body of `POST /v2/plan` and the `tag` of its plan. Settings and power state are written immediately, as one version of the desired state; port forwards and extensions follow, even if the client disconnects. A change that makes the backend fail is undone, unless `onFailure` is `keep`. With `keep`, the service keeps the profile, and what restarts waits for its window. If the plan destroys data, a snapshot is made before the reply and before anything is written; a client that disconnects meanwhile cancels it, and nothing is changed.',
  body: { description: 'The desired state, and the tag', required: true, schema: APPLY_BODY },
  replies: {
    202: { description: 'it is written; wait for the generation', body: 'json', schema: schemaOf('Apply') },
    400: {
      description: 'a malformed request, invalid settings, or blocked changes',
      body: 'json',
      schema: schemaOf('Error'),
    },
    507: {
      description: 'there is no room for the snapshot; nothing was changed',
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

/** Registers `POST /v2/apply`: carries out an approved plan. */
export function applyRoutes(app: FastifyInstance, { planner, watch, userFiles }: PlansPort): void {
  app.post<{ Body: PlanRequest & ApplyOptions }>(
    '/v2/apply',
    { ...APPLY_DOC, schema: { body: APPLY_BODY } },
    async (call, reply) => {
      const { tag, author: stated = {}, onFailure = 'return', keep, ...request } = call.body;
      const { sources, ...author } = stated;
      const how = author.to === undefined ? 'apply' : 'rollback';
      const by: Author = { how, ...callerOf(call), ...author };
      const written = keep
        ? await watch.apply(request, tag, { ...by, profile: keep.name }, keepOf(keep), onFailure, sources)
        : await planner.write(request, tag, by, onFailure, sources, signalOfDisconnect(reply));
      const sent = (await userFiles.retry()) ? [...written.sent, 'files' as const] : written.sent;
      const document: ApplyReply = { kind: 'ApplyReply', formatVersion: 1, ...written, sent };
      return reply.code(202).type(JSON_TYPE).send(indentedJson(document));
    },
  );
}
