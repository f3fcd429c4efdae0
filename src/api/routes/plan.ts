import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { RdError, type SettingsFinding } from '../../errors.ts';
import { isObject, type JsonObject } from '../../json.ts';
import type { PlanRequest } from '../../plan/change.ts';
import { makePlan } from '../../plan/plan.ts';
import { PRODUCT } from '../../product.ts';
import { canonicalise } from '../../settings/canonical.ts';
import { explain } from '../../settings/explanation.ts';
import { formatFinding } from '../../settings/finding.ts';
import type { Issue } from '../../settings/issue.ts';
import { valueAt } from '../../settings/leaf-paths.ts';
import { withoutRemovals } from '../../settings/removals.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import { unknownKeys, validate } from '../../settings/validate.ts';
import { type CollectBody, parseJson } from '../body.ts';
import type { ApiContext } from '../context.ts';
import { documented, schemaOf } from '../route-doc.ts';
import { validateContext } from '../settings-update.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** Milliseconds that a plan waits for a look, as while a step is under way: where the caller says nothing, and at most. */
const USUAL_WAIT = 3_000;
const LONGEST_WAIT = 600_000;

const BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['settings', 'state', 'prune'],
  properties: {
    settings: { type: 'object' },
    state: { enum: ['started', 'stopped', 'unmanaged'] },
    prune: { type: 'array', items: { type: 'string' } },
    wishes: { type: 'array', items: { type: 'string' } },
  },
} as const;

const DOC = documented({
  summary: 'What a desired state would change here, at what cost',
  description:
    'Changes nothing. Locked fields and fields that the driver cannot give effect to are changes with `blocked`, not errors.',
  query: {
    waitMs: {
      description: `How long to wait for a look at what runs, in milliseconds up to ${LONGEST_WAIT}; ${USUAL_WAIT} where it is missing`,
    },
  },
  body: { description: 'The desired state', required: true, schema: BODY },
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
export function planRoutes(app: FastifyInstance, context: ApiContext, collectBody: CollectBody): void {
  const { controllers, store, driver, about } = context;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (_request: FastifyRequest, payload: IncomingMessage) =>
    parseJson(await collectBody(payload)),
  );
  app.post<{ Body: PlanRequest }>('/v2/plan', { ...DOC, schema: { body: BODY } }, async ({ body, query }, reply) => {
    const limit = AbortSignal.timeout(waitOf(query));
    const request = { ...body, settings: canonicalise(body.settings) };
    checkSettings(request, store.snapshot().desired.settings, context);
    // A container that was started a second ago is at stake, too.
    const looked = await controllers.look(AbortSignal.any([limit, gone(reply)]), 'until it succeeds');
    const userFiles = await context.userFiles();
    const { desired } = store.snapshot();
    const observed = controllers.observed();
    const plan = makePlan({
      request,
      live: desired.settings,
      power: context.idle ? 'stopped' : desired.power,
      locks: store.locks,
      ...(about.lockedBy === undefined ? {} : { lockedBy: about.lockedBy }),
      driver,
      observed,
      outdated: !looked,
      target: { product: PRODUCT.name, home: about.home, driver: driver.name, simulated: driver.simulated },
      generation: desired.generation,
      ...(userFiles ? { userFiles } : {}),
    });
    return reply.type(JSON_TYPE).send(`${JSON.stringify(plan, null, 2)}\n`);
  });
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

/** All problems of the document itself. Locks and refusals of the driver are part of a plan, not errors. */
function checkSettings({ settings }: PlanRequest, current: Settings, context: ApiContext): void {
  const { driver, host, kubernetesVersions } = context;
  const unlocked = validateContext(current, { driver, host, kubernetesVersions });
  const findings: SettingsFinding[] = [
    ...validate(withoutRemovals(settings), unlocked).map((issue) => ({
      pointer: issue.pointer,
      ...explain(issue, sent(issue, settings)),
    })),
    ...unknownKeys(settings).map(({ pointer, path, suggestion }) => ({
      pointer,
      message: `"${path}" is not a setting`,
      ...(suggestion === undefined ? {} : { suggestion }),
    })),
  ];
  if (findings.length === 0) return;
  const details = findings.map(formatFinding);
  throw new RdError('ERR_SETTINGS_INVALID', 'the requested settings are not valid', { details, findings });
}

/** The value that an issue is about, as JSON. */
function sent({ pointer }: Issue, settings: JsonObject): string | undefined {
  const value = valueAt(settings, pointer);
  return value === undefined ? undefined : JSON.stringify(value);
}
