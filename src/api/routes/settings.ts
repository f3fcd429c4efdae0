import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { RdError } from '../../errors.ts';
import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import { indentedJson } from '../../json.ts';
import type { Log } from '../../os/limited-log.ts';
import { refuseTooLarge } from '../../plan/request-size.ts';
import { restartReasons } from '../../plan/restart-reasons.ts';
import { settingsWithoutSecrets } from '../../plan/secrets.ts';
import { decideProposal, decideUpdate, type UpdateContext, updateError } from '../../plan/settings-update.ts';
import type { BackendState, Controllers } from '../../reconcile/contract.ts';
import type { WriteCounters } from '../../reconcile/status-document.ts';
import { leaves } from '../../settings/leaf-paths.ts';
import { SCHEMA_VERSION } from '../../settings/settings.gen.ts';
import type { DesiredSnapshot, DesiredStore, WriteResult } from '../../state/desired-store.ts';
import { authorOfPut } from '../author.ts';
import { bytesOf, settingsPayload } from '../body.ts';
import { type RouteDoc, schemaOf, withDoc } from '../route-doc.ts';
import type { TokenHolder } from '../token-guard.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

const GET_DOC = {
  scope: 'read',
  summary: 'All settings',
  replies: {
    200: {
      description: 'always; never 304',
      body: 'text',
      schema: schemaOf('Settings'),
      headers: { ETag: 'Strong tag of settings and locks' },
    },
  },
} as const satisfies RouteDoc;
const WRITTEN = {
  ETag: 'Tag of the current settings',
  'Rdctl-Generation': 'Version of the desired state; in effect when `observedGeneration` of the status has reached it',
  'Rdctl-Ignored-Keys': 'Keys of the body that are not settings, percent-encoded; absent if there are none',
};
const PUT_DOC = {
  scope: 'write',
  summary: 'Change settings',
  description:
    'Omitted keys stay unchanged; lists are replaced; maps are merged by key, and `null` removes an entry. Everything is validated before anything is changed.',
  headers: { 'If-Match': 'Tag of the settings that were read; any number, separated by commas' },
  body: {
    description:
      'Any part of the settings with its `version`; older versions are migrated. Numbers and booleans may be strings.',
    required: true,
    schema: {
      type: 'object',
      required: ['version'],
      properties: { version: { type: 'integer', minimum: 1, maximum: SCHEMA_VERSION } },
      if: { properties: { version: { const: SCHEMA_VERSION } } },
      // biome-ignore lint/suspicious/noThenProperty: `then` is the schema keyword.
      then: schemaOf('SettingsPart'),
    },
  },
  replies: {
    202: {
      description: 'accepted; the body says what happens next',
      body: 'text',
      headers: WRITTEN,
      example: TEXTS.noRestart,
    },
    400: {
      description: 'no settings, or invalid ones: a heading and one line per error',
      body: 'text',
      example: TEXTS.noSettings,
    },
    412: { description: '`If-Match` was sent and the settings have changed since', body: 'text' },
    503: { description: 'the service is shutting down', body: 'text' },
  },
} as const satisfies RouteDoc;
const LOCKED_DOC = withDoc({
  scope: 'read',
  summary: 'List the fields that an administrator has locked',
  replies: {
    200: {
      description: 'always; `true` for every locked field',
      body: 'text',
      schema: { type: 'object' },
      example: { version: true, containerEngine: { name: true } },
    },
  },
});

/** Keys that one log line names. */
const LOGGED_KEYS = 20;

interface Outcome {
  text: string;
  ignored: readonly string[];
  paths: readonly string[];
}

/** The port of the settings routes. */
export interface SettingsPort extends Pick<UpdateContext, 'driver' | 'host' | 'kubernetesVersions'> {
  store: Pick<DesiredStore, 'snapshot' | 'write' | 'locks'>;
  controllers: Pick<Controllers, 'observed' | 'status'>;
  userFiles: Pick<FollowingIntegration, 'idle'>;
  counters: WriteCounters;
  log: Log;
}

/** Registers the settings document. The response is text, which the compatible interface requires, and never 304. */
export function settingsRoutes(app: FastifyInstance, port: SettingsPort): void {
  const { store } = port;
  for (const url of ['/v1/settings', '/v0/settings']) {
    const older = url.startsWith('/v0/') ? ({ unlisted: true } as const) : {};
    app.get(url, withDoc({ ...GET_DOC, ...older }), ({ token }, reply) => {
      sendSettings(reply, store.snapshot(), token);
    });
    app.put(url, withDoc({ ...PUT_DOC, ...older }), (request, reply) => putSettings(request, reply, port));
  }
  app.get('/v1/settings/locked', LOCKED_DOC, (_request, reply) => {
    reply.type(TEXT_TYPE).send(indentedJson(store.locks));
  });
}

/** Sends the settings with their ETag, without secrets for tokens. */
function sendSettings(reply: FastifyReply, { desired, etag }: DesiredSnapshot, token: TokenHolder | undefined): void {
  const settings = token ? settingsWithoutSecrets(desired.settings) : desired.settings;
  reply.type(TEXT_TYPE).header('ETag', etag).send(indentedJson(settings));
}

async function putSettings(request: FastifyRequest, reply: FastifyReply, port: SettingsPort): Promise<FastifyReply> {
  const { store, counters, log } = port;
  counters.settingsPuts += 1;
  const payload = settingsPayload(bytesOf(request));
  const condition = request.headers['if-match'];

  const { answer, now } = await store.write((before): WriteResult<Outcome> => {
    checkCondition(condition, before);
    const { desired } = before;
    const update = decideUpdate(payload, desired.settings, { ...port, locks: store.locks });
    if (update.kind === 'refused') throw updateError(update.problems);
    const { ignored } = update;
    if (update.kind === 'unchanged') return { answer: { text: TEXTS.noChange, ignored, paths: [] } };
    const { settings, paths } = update;
    // Computed before the write takes effect, so the response can say what the write will do.
    const { controllers, driver } = port;
    const reasons = Object.keys(restartReasons(settings, controllers.observed(), driver, desired.settings));
    const restarts = desired.power === 'started' && reasons.length > 0;
    const text = restarts ? restartText(controllers.status().backendState) : TEXTS.noRestart;
    return { next: { settings }, answer: { text, ignored, paths }, by: authorOfPut(request) };
  });

  const { ignored, paths, text } = answer;
  if (paths.length > 0) {
    counters.settingsWrites += 1;
    log('info', 'settings changed', { paths, generation: now.desired.generation, answer: text });
    // Waits for the user's files that follow from the settings alone.
    await port.userFiles.idle();
  }
  if (ignored.length > 0) {
    log('warn', 'settings ignored: unknown keys', { keys: ignored.slice(0, LOGGED_KEYS), count: ignored.length });
    reply.header('Rdctl-Ignored-Keys', ignoredKeysHeader(ignored));
  }
  return reply
    .code(202)
    .header('ETag', now.etag)
    .header('Rdctl-Generation', String(now.desired.generation))
    .type(TEXT_TYPE)
    .send(text);
}

function restartText(state: BackendState): string {
  return state === 'STARTING' || state === 'STOPPING' ? TEXTS.busy : TEXTS.reconfiguring;
}

/** Checks `If-Match` (RFC 9110: a list of strong tags, or `*`). Called in the write queue, so nothing can intervene. */
function checkCondition(header: string | undefined, { etag }: DesiredSnapshot): void {
  if (header === undefined || header.trim() === '*') return;
  if (header.split(',').some((tag) => tag.trim() === etag)) return;
  throw new RdError('ERR_PRECONDITION_FAILED', 'the settings have changed since they were read', {
    advice: 'Read them again and retry.',
  });
}

/** Characters of the header with ignored keys; clients limit the size of headers. */
const LIMIT = 4000;
const MORE = encodeURIComponent('…');

/** Formats `Rdctl-Ignored-Keys`: percent-encoded keys, as many as fit, then an ellipsis. */
function ignoredKeysHeader(keys: readonly string[]): string {
  let value = '';
  for (const key of keys) {
    const next = `${value}${value === '' ? '' : ', '}${encodeKey(key)}`;
    if (next.length > LIMIT) return value === '' ? MORE : `${value}, ${MORE}`;
    value = next;
  }
  return value;
}

/** Encodes a key; lone surrogates, which have no encoding, become the replacement character. */
function encodeKey(key: string): string {
  return encodeURIComponent(Buffer.from(key).toString());
}

const PROPOSAL_DOC = withDoc({
  scope: 'plan',
  summary: 'List the proposed fields that would restart the backend or destroy cluster data',
  description: 'Changes nothing. No `version` is needed; older versions are not migrated.',
  body: { description: 'Any part of the settings', required: true, schema: schemaOf('SettingsPart') },
  replies: {
    200: {
      description: 'the proposal is valid; only its fields are listed',
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
      description: 'no settings, or invalid ones: a heading and one line per error',
      body: 'text',
      example: TEXTS.noSettings,
    },
  },
});

/** Registers `PUT /v1/propose_settings`: the fields of a proposal whose change would restart something. Changes nothing. */
export function proposalRoutes(app: FastifyInstance, port: SettingsPort): void {
  const { store, controllers, driver } = port;
  app.put('/v1/propose_settings', PROPOSAL_DOC, (request, reply) => {
    const payload = settingsPayload(bytesOf(request));
    refuseTooLarge(payload);
    const current = store.snapshot().desired.settings;
    const update = decideProposal(payload, current, { ...port, locks: store.locks });
    if (update.kind === 'refused')
      throw new RdError('ERR_SETTINGS_INVALID', [TEXTS.proposalErrors, ...update.problems].join('\n'));
    const settings = update.kind === 'changed' ? update.settings : current;
    const named = new Set<string>(leaves(payload).map(([path]) => path));
    const reasons = Object.entries(restartReasons(settings, controllers.observed(), driver, current));
    reply.type(JSON_TYPE).send(JSON.stringify(Object.fromEntries(reasons.filter(([path]) => named.has(path)))));
  });
}
