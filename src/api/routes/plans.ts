import type { FastifyInstance, FastifyReply } from 'fastify';
import { RdError } from '../../errors.ts';
import { indentedJson, isObject } from '../../json.ts';
import type { LiveState, PlanRequest } from '../../plan/change.ts';
import type { Author, StatedAuthor } from '../../plan/history.ts';
import { PLANNED_HOWS, type PlannedHow, type SentKeep, type SentWindow } from '../../plan/kept.ts';
import { PORT_FORWARD_SCHEMA } from '../../plan/port-forward-schema.ts';
import type { OnFailure } from '../../plan/return.ts';
import { settingsWithoutSecrets } from '../../plan/secrets.ts';
import type { ApplyReply } from '../../reconcile/status-document.ts';
import { AUTHOR, callerOf } from '../author.ts';
import type { ApiContext, TokenHolder } from '../context.ts';
import { KEEP_SCHEMA, keepOf, WINDOW_SCHEMA, windowOf } from '../keep.ts';
import { createPlanTurns } from '../plan-turns.ts';
import { documented, schemaOf } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** Milliseconds that a plan waits for an observation by default, and at most. */
const USUAL_WAIT = 3_000;
const LONGEST_WAIT = 600_000;

const PLAN_REQUEST = {
  type: 'object',
  additionalProperties: false,
  required: ['settings', 'state', 'prune'],
  properties: {
    settings: { type: 'object' },
    machine: { description: 'The `machine` block of a profile.', type: 'object' },
    state: { enum: ['started', 'stopped', 'unmanaged'] },
    prune: { type: 'array', items: { type: 'string' } },
    wishes: { type: 'array', items: { type: 'string' } },
    snapshot: {
      description: 'Whether a snapshot is made before data is destroyed.',
      type: 'boolean',
      default: true,
    },
    portForwards: {
      type: 'object',
      additionalProperties: false,
      required: ['entries', 'exclusive'],
      properties: {
        entries: { type: 'array', items: PORT_FORWARD_SCHEMA },
        exclusive: { description: 'Forwards that are not listed are removed.', type: 'boolean' },
        leaves: { description: 'Names of forwards to leave unchanged.', type: 'array', items: { type: 'string' } },
      },
    },
  },
} as const;

const PLAN_BODY = {
  ...PLAN_REQUEST,
  properties: {
    ...PLAN_REQUEST.properties,
    maintenance: WINDOW_SCHEMA,
    how: {
      description:
        'What carries the plan out, on which depends what kept profiles make of it: an apply, the default; a rollback, which pauses their healing; or `set`, a write of settings, which is not refused.',
      enum: PLANNED_HOWS,
    },
    kept: { description: 'Name of the kept profile that the apply updates.', type: 'string', maxLength: 256 },
  },
} as const;

const PLAN_DOC = documented({
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

/** `POST /v2/plan`: what a desired state would change here, and what that would cost. Changes nothing. */
export function planRoutes(app: FastifyInstance, { controllers, planner, watch, userFiles }: ApiContext): void {
  const turns = createPlanTurns();
  app.post<{ Body: PlanRequest & { maintenance?: SentWindow; how?: PlannedHow; kept?: string } }>(
    '/v2/plan',
    { ...PLAN_DOC, schema: { body: PLAN_BODY } },
    async (call, reply) => {
      const { maintenance, how = 'apply', kept, ...body } = call.body;
      const { query, token } = call;
      const limit = AbortSignal.timeout(waitOf(query));
      const gone = disconnected(reply);
      const window = maintenance && windowOf(maintenance);
      const text = await turns.admit(token?.name, async (turn) => {
        const request = await turn(() => planner.check(body));
        // A container that was started a second ago counts, too.
        const looked = await controllers.look(AbortSignal.any([limit, gone]), 'until it succeeds');
        const outdated = controllers.waitingFor() ?? 'the driver did not answer';
        const files = await userFiles.userFiles();
        const facts = { ...(looked ? {} : { outdated }), ...(files ? { userFiles: files } : {}) };
        const writer = { by: { how, ...callerOf(call) }, ...(kept === undefined ? {} : { kept }) };
        const withLive = isObject(query) && query.live === 'true';
        // Plan and live state are of the same moment: nothing is awaited between them.
        const { plan, live } = await turn(() => ({
          plan: watch.plan(planner.planFor(request, writer, facts), window),
          live: withLive ? { live: liveState(planner.live(), token) } : {},
        }));
        const covered = await planner.withCover(plan, request, how);
        return turn(() => indentedJson({ ...covered, ...live }));
      });
      return reply.type(JSON_TYPE).send(text);
    },
  );
}

/** Tokens see no secrets. */
function liveState(live: LiveState, token: TokenHolder | undefined): LiveState {
  return token ? { ...live, settings: settingsWithoutSecrets(live.settings) } : live;
}

/** @throws RdError `ERR_BODY_INVALID` unless it is a number of milliseconds, given once. */
function waitOf(query: unknown): number {
  const given: unknown = isObject(query) ? query.waitMs : undefined;
  if (given === undefined) return USUAL_WAIT;
  const ms = typeof given === 'string' && /^\d{1,6}$/.test(given) ? Number(given) : Number.NaN;
  if (ms <= LONGEST_WAIT) return ms;
  throw new RdError('ERR_BODY_INVALID', `waitMs must be a number of milliseconds from 0 to ${LONGEST_WAIT}`);
}

/** Aborted when the client disconnects, and after the reply. */
function disconnected({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController();
  raw.once('close', () => closed.abort());
  return closed.signal;
}

const APPLY_REQUEST = {
  ...PLAN_REQUEST,
  required: [...PLAN_REQUEST.required, 'tag'],
  properties: {
    ...PLAN_REQUEST.properties,
    tag: { type: 'string' },
    author: AUTHOR,
    keep: {
      ...KEEP_SCHEMA,
      properties: {
        ...KEEP_SCHEMA.properties,
        whole: { ...PLAN_REQUEST, description: 'What is kept, if this apply skips part of it.' },
      },
    },
    onFailure: {
      description:
        'What happens if the backend fails because of the change. `return`, the default: the service goes back to the last state that ran, as `transaction` in the status shows; `keep`: the change stays.',
      enum: ['return', 'keep'],
    },
  },
} as const;

const APPLY_REPLY = {
  type: 'object',
  required: ['kind', 'formatVersion', 'generation', 'sent', 'continues'],
  properties: {
    kind: { const: 'ApplyReply' },
    formatVersion: { const: 1 },
    generation: { description: 'Version of the desired state after this write.', type: 'integer' },
    sent: {
      description:
        'What was written; `retry`: nothing differed, and a failed backend is retried; `files`: files of the user that could not be changed have been tried again.',
      type: 'array',
      items: { enum: ['settings', 'power', 'retry', 'files'] },
    },
    continues: { description: 'Port forwards and extensions follow; see `apply` in the status.', type: 'boolean' },
    snapshot: { description: 'Name of the snapshot that was made before data is destroyed.', type: 'string' },
  },
} as const;

const APPLY_DOC = documented({
  scope: 'write',
  summary: 'Apply a plan',
  description:
    'Takes the body of `POST /v2/plan` and the `tag` of its plan. Settings and power state are written immediately, as one version of the desired state; port forwards and extensions follow, even if the client disconnects. A change that makes the backend fail is undone, unless `onFailure` is `keep`. With `keep`, the service keeps the profile, and what restarts waits for its window. If the plan destroys data, a snapshot is made before the reply and before anything is written; a client that disconnects meanwhile cancels it, and nothing is changed.',
  body: { description: 'The desired state, and the tag', required: true, schema: APPLY_REQUEST },
  replies: {
    202: { description: 'it is written; wait for the generation', body: 'json', schema: APPLY_REPLY },
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

/** `POST /v2/apply`: carries out an approved plan. */
export function applyRoutes(app: FastifyInstance, { planner, watch, userFiles }: ApiContext): void {
  app.post<{ Body: PlanRequest & { tag: string; author?: StatedAuthor; onFailure?: OnFailure; keep?: SentKeep } }>(
    '/v2/apply',
    { ...APPLY_DOC, schema: { body: APPLY_REQUEST } },
    async (call, reply) => {
      const { tag, author: stated = {}, onFailure = 'return', keep, ...request } = call.body;
      const { sources, ...author } = stated;
      const how = author.to === undefined ? 'apply' : 'rollback';
      const by: Author = { how, ...callerOf(call), ...author };
      const written = keep
        ? await watch.apply(request, tag, { ...by, profile: keep.name }, keepOf(keep), onFailure, sources)
        : await planner.write(request, tag, by, onFailure, sources, disconnected(reply));
      const sent = (await userFiles.retry()) ? [...written.sent, 'files' as const] : written.sent;
      const document: ApplyReply = { kind: 'ApplyReply', formatVersion: 1, ...written, sent };
      return reply.code(202).type(JSON_TYPE).send(indentedJson(document));
    },
  );
}
