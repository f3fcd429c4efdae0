import type { FastifyInstance, FastifyReply } from 'fastify';
import { RdError, type SettingsFinding } from '../../errors.ts';
import { indentedJson, isObject } from '../../json.ts';
import { refuseBlocked } from '../../plan/blocks.ts';
import type { LiveState, Plan, PlanRequest } from '../../plan/change.ts';
import { patchOf, plannedMachineOptions } from '../../plan/diff.ts';
import type { StatedAuthor } from '../../plan/history.ts';
import { makePlan } from '../../plan/plan.ts';
import { PORT_FORWARD_SCHEMA } from '../../plan/port-forward-schema.ts';
import { validateContext } from '../../plan/settings-update.ts';
import type { UserFileFacts } from '../../plan/user-files.ts';
import { PRODUCT } from '../../product.ts';
import type { Desired } from '../../reconcile/contract.ts';
import type { ApplyReply } from '../../reconcile/status-document.ts';
import { canonicalize } from '../../settings/canonical.ts';
import { explain, formatFinding } from '../../settings/issue.ts';
import { valueAt } from '../../settings/leaf-paths.ts';
import { readMachineOptions } from '../../settings/machine-options.ts';
import { mergeSettings, withoutRemovals } from '../../settings/merge.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import { unknownKeys, validate } from '../../settings/validate.ts';
import { AUTHOR, programOf } from '../author.ts';
import type { ApiContext, ReservedSteps } from '../context.ts';
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

const PLAN_DOC = documented({
  summary: 'Plan the changes that reach a desired state, with their cost',
  description:
    'Changes nothing. Locked fields and fields that the driver does not support are changes with `blocked`, not errors.',
  query: {
    waitMs: {
      description: `How long to wait for an observation of the backend, in milliseconds, up to ${LONGEST_WAIT}; the default is ${USUAL_WAIT}`,
    },
    live: {
      description:
        '`true` adds `live` to the plan: the settings, locks, power state and port forwards that it was compared with',
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

/** `POST /v2/plan`: what a desired state would change here, and what that would cost. Changes nothing. */
export function planRoutes(app: FastifyInstance, context: ApiContext): void {
  const { controllers, store } = context;
  app.post<{ Body: PlanRequest }>(
    '/v2/plan',
    { ...PLAN_DOC, schema: { body: PLAN_REQUEST } },
    async ({ body, query }, reply) => {
      const limit = AbortSignal.timeout(waitOf(query));
      const request = checkedRequest(body, store.snapshot().desired.settings, context);
      // A container that was started a second ago counts, too.
      const looked = await controllers.look(AbortSignal.any([limit, disconnected(reply)]), 'until it succeeds');
      const outdated = controllers.waitingFor() ?? 'the driver did not answer';
      const userFiles = await context.userFiles();
      // Plan and live state are of the same moment: nothing is awaited between them.
      const { desired } = store.snapshot();
      const plan = planOf(request, desired, context, {
        ...(looked ? {} : { outdated }),
        ...(userFiles ? { userFiles } : {}),
      });
      const withLive = isObject(query) && query.live === 'true';
      const document = withLive ? { ...plan, live: liveState(desired, context) } : plan;
      return reply.type(JSON_TYPE).send(indentedJson(document));
    },
  );
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

function liveState({ settings, machine, power }: Desired, { store, portForwards }: ApiContext): LiveState {
  const forwards = portForwards.list().portForwards;
  return {
    settings,
    machine,
    locks: store.locks,
    power,
    portForwards: forwards.map(({ namespace, service, k8sPort, hostPort }) => ({
      namespace,
      service,
      k8sPort,
      hostPort,
    })),
  };
}

/** The plan that carries out a request from this desired state. */
function planOf(
  request: PlanRequest,
  { settings, machine, power, generation }: Desired,
  context: ApiContext,
  observation: { outdated?: string; userFiles?: UserFileFacts } = {},
): Plan {
  const { store, driver, about, controllers, portForwards } = context;
  return makePlan({
    request,
    live: settings,
    machine,
    power: context.idle ? 'stopped' : power,
    locks: store.locks,
    ...(about.lockedBy === undefined ? {} : { lockedBy: about.lockedBy }),
    driver,
    observed: controllers.observed(),
    target: { product: PRODUCT.name, home: about.home, driver: driver.name, simulated: driver.simulated },
    generation,
    ...(request.portForwards ? { forwards: portForwards.list() } : {}),
    ...observation,
  });
}

/**
 * The request in canonical form. Locks and settings that the driver does not support are part of a plan, not errors.
 * @throws RdError `ERR_SETTINGS_INVALID` with every problem of the settings, `ERR_BODY_INVALID` for invalid forwards.
 */
function checkedRequest(body: PlanRequest, current: Settings, context: ApiContext): PlanRequest {
  const { driver, host, kubernetesVersions } = context;
  const settings = canonicalize(body.settings);
  const findings: SettingsFinding[] = [
    ...validate(withoutRemovals(settings), validateContext(current, { driver, host, kubernetesVersions })).map(
      (issue) => {
        const value = valueAt(settings, issue.pointer);
        return {
          pointer: issue.pointer,
          ...explain(issue, value === undefined ? undefined : JSON.stringify(value)),
        };
      },
    ),
    ...unknownKeys(settings).map(({ pointer, path, suggestion }) => ({
      pointer,
      message: `"${path}" is not a setting`,
      ...(suggestion === undefined ? {} : { suggestion }),
    })),
  ];
  const { options: machine, problems } = readMachineOptions(body.machine ?? {});
  findings.push(...problems.map(({ part: _, ...finding }) => ({ ...finding, pointer: `/machine${finding.pointer}` })));
  if (findings.length > 0) {
    const details = findings.map(formatFinding);
    throw new RdError('ERR_SETTINGS_INVALID', 'the requested settings are not valid', { details, findings });
  }
  return { ...body, settings, ...(body.machine ? { machine } : {}) };
}

const APPLY_REQUEST = {
  ...PLAN_REQUEST,
  required: [...PLAN_REQUEST.required, 'tag'],
  properties: { ...PLAN_REQUEST.properties, tag: { type: 'string' }, author: AUTHOR },
} as const;

const APPLY_REPLY = {
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
  body: { description: 'The desired state, and the tag', required: true, schema: APPLY_REQUEST },
  replies: {
    202: { description: 'it is written; wait for the generation', body: 'json', schema: APPLY_REPLY },
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

/** `POST /v2/apply`: carries out an approved plan. */
export function applyRoutes(app: FastifyInstance, context: ApiContext): void {
  const { store, applies, controllers, counters, log } = context;
  app.post<{ Body: PlanRequest & { tag: string; author?: StatedAuthor } }>(
    '/v2/apply',
    { ...APPLY_DOC, schema: { body: APPLY_REQUEST } },
    async ({ body: { tag, author = {}, ...body }, headers }, reply) => {
      let steps: ReservedSteps | undefined;
      const { answer, now } = await store
        .write(({ desired }) => {
          const request = checkedRequest(body, desired.settings, context);
          const plan = planOf(request, desired, context);
          steps = applies.reserve(plan, request);
          if (plan.tag !== tag) {
            throw new RdError('ERR_PLAN_STALE', 'the plan is stale; nothing was changed', {
              advice: 'Plan again and review the changes.',
            });
          }
          refuseBlocked(plan);
          // The request was checked against these very settings, so its differences need no further validation.
          const patch = patchOf(plan, request, desired.settings);
          const settings = patch ? mergeSettings(desired.settings, patch) : desired.settings;
          const machine = plannedMachineOptions(plan, request, desired.machine);
          const power = request.state === 'unmanaged' ? desired.power : request.state;
          const sent: ApplyReply['sent'] = [];
          if (patch || machine !== desired.machine) sent.push('settings');
          if (power !== desired.power) sent.push('power');
          // Nothing differs, and an earlier attempt failed for good. Its cause may be gone.
          const gaveUp = power === 'started' && controllers.status().backendState === 'ERROR';
          if (sent.length === 0 && gaveUp) sent.push('retry');
          return {
            ...(sent.length > 0 ? { next: { settings, machine, power } } : {}),
            answer: { plan, sent },
            by: { how: author.to === undefined ? 'apply' : 'rollback', ...programOf(headers), ...author },
          };
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
      return reply.code(202).type(JSON_TYPE).send(indentedJson(document));
    },
  );
}
