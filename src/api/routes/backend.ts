import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import type { ResetMode, ResetRequest, Resets } from '../../features/snapshots/resets.ts';
import { isObject } from '../../json.ts';
import type { Log } from '../../os/limited-log.ts';
import type { Author } from '../../plan/history.ts';
import { type Consent, LOSS_OF } from '../../plan/losses.ts';
import type { BackendState, Controllers, Power } from '../../reconcile/contract.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import { callerOf } from '../author.ts';
import { bytesOf, parseJson } from '../body.ts';
import { withDoc } from '../route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

/** The port of the backend routes: state, shutdown and resets. */
export interface BackendPort {
  controllers: Pick<Controllers, 'status'>;
  store: Pick<DesiredStore, 'write'>;
  userFiles: Pick<FollowingIntegration, 'retry'>;
  /** True while the lock file of a snapshot operation exists. */
  isBackendLocked(): Promise<boolean>;
  /** True if the lock file belongs to another program. */
  isLockedByOther(): Promise<boolean>;
  /**
   * Begins an orderly shutdown; `by` is its author in the history. Resolves once clients that look for the service of this home can see that it is
   * exiting.
   */
  requestStop(reason: string, by?: Author): Promise<void>;
  /** Throws if these directories must not be reset. */
  checkFactoryReset(request: { cache: boolean }): void;
  /** Begins an orderly shutdown that ends with the removal of this installation; `cache` also removes downloads. */
  requestFactoryReset(request: { cache: boolean }): Promise<void>;
  /** Carries out `PUT /v1/k8s_reset` and throws its errors. */
  resetBackend: Resets;
  log: Log;
}

const STATES = ['STOPPED', 'STARTING', 'STARTED', 'STOPPING', 'ERROR', 'DISABLED'] as const satisfies BackendState[];
const GET_DOC = withDoc({
  scope: 'read',
  summary: 'Get the state of the backend',
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
          locked: { description: 'A snapshot operation is using the backend.', type: 'boolean' },
        },
      },
      example: { vmState: 'STARTED', locked: false },
    },
  },
});
const PUT_DOC = withDoc({
  scope: 'write',
  summary: 'Start or stop the backend',
  description:
    'Returns immediately; the desired state persists across restarts of the service. Poll the state, or wait for the generation.',
  body: {
    description: 'The desired state; `locked` is true while a program works on the data',
    required: true,
    schema: {
      type: 'object',
      required: ['vmState'],
      properties: { vmState: { enum: ['STARTED', 'STOPPED'] }, locked: { type: 'boolean' } },
    },
  },
  replies: {
    202: {
      description: 'the desired state is stored',
      body: 'text',
      example: TEXTS.backendState,
      headers: { 'Rdctl-Generation': 'Version of the desired state after this write' },
    },
    400: { description: 'unknown state, or invalid JSON', body: 'text' },
    409: {
      description:
        'the request stops the backend for a snapshot that another program is making or restoring, as `locked` and its lock file say',
      body: 'text',
    },
    503: { description: 'the service is shutting down', body: 'text' },
  },
});

/**
 * Refusal of a snapshot by the compatible tool: it would copy none of the data of a desktop that this service runs, and restore data that nothing
 * uses.
 */
const SNAPSHOT_OF_ANOTHER =
  "another program cannot make or restore snapshots of this desktop: its data is not in Rancher Desktop's files";
const SNAPSHOT_HERE = 'Use `rdctl snapshot` of the rdctl that runs this service; nothing was stopped.';

const POWERS: ReadonlyMap<unknown, Power> = new Map([
  ['STARTED', 'started'],
  ['STOPPED', 'stopped'],
]);

/** Registers `/v1/backend_state`: the state of the backend, and its desired power. */
export function backendStateRoutes(app: FastifyInstance, port: BackendPort): void {
  const { controllers, store, userFiles, log } = port;
  app.get('/v1/backend_state', GET_DOC, async (_request, reply) => {
    const vmState = controllers.status().backendState;
    return reply.type(JSON_TYPE).send(JSON.stringify({ vmState, locked: await port.isBackendLocked() }));
  });

  app.put('/v1/backend_state', PUT_DOC, async (request, reply) => {
    const { power, locked } = parseState(bytesOf(request));
    if (power === 'stopped' && locked && (await port.isLockedByOther())) {
      // The status line is the only part of this response that the compatible tool shows.
      reply.raw.statusMessage = SNAPSHOT_OF_ANOTHER;
      throw new RdError('ERR_BACKEND_LOCKED', SNAPSHOT_OF_ANOTHER, { advice: SNAPSHOT_HERE });
    }
    const { now } = await store.write(({ desired }) => {
      // Starting again after a failed start is a new desired state: the new generation clears the terminal error.
      const retry = power === 'started' && controllers.status().backendState === 'ERROR';
      if (desired.power === power && !retry) return { answer: undefined };
      return { next: { power }, answer: undefined, by: { how: 'power', ...callerOf(request) } };
    });
    if (power === 'started') await userFiles.retry();
    log('info', 'backend state requested', { power, generation: now.desired.generation });
    return reply
      .code(202)
      .header('Rdctl-Generation', String(now.desired.generation))
      .type(TEXT_TYPE)
      .send(TEXTS.backendState);
  });
}

/** The compatible tool sends `locked` when it stops the backend for a snapshot. */
function parseState(bytes: Buffer): { power: Power; locked: boolean } {
  const value = parseJson(bytes);
  const state = isObject(value) ? value.vmState : undefined;
  const power = POWERS.get(state);
  if (power) return { power, locked: isObject(value) && value.locked === true };
  throw new RdError(
    'ERR_BODY_INVALID',
    `invalid desired VM state "${typeof state === 'string' ? state : JSON.stringify(state)}"`,
    {
      advice: 'Send {"vmState":"STARTED"} or {"vmState":"STOPPED"}.',
    },
  );
}

/**
 * Registers `PUT /v1/shutdown`. It responds once nothing listens here any more, so that the caller can start the next service; then everything stops
 * in order.
 */
export function shutdownRoutes(app: FastifyInstance, { requestStop, log }: BackendPort): void {
  for (const path of ['/v1/shutdown', '/v0/shutdown']) {
    app.put(path, {
      ...withDoc({
        scope: 'write',
        summary: 'Stop the backend and the service',
        ...(path.startsWith('/v0/') ? { unlisted: true as const } : {}),
        replies: {
          202: {
            description: 'always: nothing listens here any more, and the backend begins to stop',
            body: 'text',
            example: TEXTS.shutdown,
          },
        },
      }),
      handler: async (request, reply) => {
        log('info', 'shutdown requested over the API');
        await requestStop('a client asked for it', { how: 'power', ...callerOf(request) });
        return reply.code(202).header('Connection', 'close').type(TEXT_TYPE).send(TEXTS.shutdown);
      },
    });
  }
}

const RESET_DOC = withDoc({
  scope: 'write',
  summary: 'Delete the cluster data, or all data of the backend',
  description:
    'Returns when the backend is running again, which may take minutes, or stopped if it should be. Without a cluster, `fast` is a restart.',
  body: {
    description: '`fast` (the default) keeps images, containers and volumes; `wipe` keeps only the settings',
    required: true,
    schema: {
      type: 'object',
      properties: {
        mode: { enum: ['fast', 'wipe'] },
        snapshot: {
          description:
            '`true`: a snapshot is made first, or nothing is reset; `false`: none. Absent: one is made if there is room.',
          type: 'boolean',
        },
        consent: { description: 'How a person has consented, for the history.', enum: ['flag', 'prompt'] },
      },
    },
  },
  replies: {
    200: { description: 'done', body: 'text', example: TEXTS.resetDone.fast },
    400: { description: 'invalid JSON, or an unknown mode', body: 'text' },
    409: { description: 'a snapshot operation is in progress', body: 'text' },
    502: { description: 'the backend did not stop or did not start again', body: 'text' },
    503: { description: 'the backend is starting or stopping; nothing was done', body: 'text' },
    504: { description: 'the data was reset, and the backend is not running again after ten minutes', body: 'text' },
    507: { description: 'there is no room for the snapshot that was asked for; nothing was done', body: 'text' },
  },
});

/** Registers `PUT /v1/k8s_reset`. */
export function k8sResetRoutes(app: FastifyInstance, { resetBackend }: BackendPort): void {
  app.put('/v1/k8s_reset', RESET_DOC, async (request, reply) => {
    const { mode, ...rest } = parseReset(bytesOf(request));
    await resetBackend(mode, { ...rest, by: { how: 'reset', ...callerOf(request), ...rest.by } });
    return reply.type(TEXT_TYPE).send(TEXTS.resetDone[mode]);
  });
}

/**
 * Parses a reset. Without a mode, it is the one that loses less; an unknown mode is refused and deletes nothing. A client of the compatible interface
 * does not say whether it wants a snapshot.
 */
function parseReset(bytes: Buffer): {
  mode: ResetMode;
  snapshot: ResetRequest['snapshot'];
  by: { consent?: Consent };
} {
  const value = parseJson(bytes);
  if (!isObject(value) && !Array.isArray(value)) throw new RdError('ERR_BODY_INVALID', TEXTS.notJson);
  const { mode = 'fast', snapshot, consent } = isObject(value) ? value : {};
  if (mode !== 'fast' && mode !== 'wipe') {
    throw new RdError('ERR_BODY_INVALID', `invalid reset mode ${JSON.stringify(mode)}`, {
      advice: 'Send {"mode":"fast"} or {"mode":"wipe"}.',
    });
  }
  const by: { consent?: Consent } = {};
  if (consent === 'flag' || consent === 'prompt') by.consent = { items: [LOSS_OF[mode]], by: consent };
  return { mode, snapshot: snapshot === true ? 'required' : snapshot === false ? 'none' : 'if possible', by };
}

const FACTORY_RESET_DOC = withDoc({
  scope: 'closed',
  summary: 'Remove this installation and exit',
  description:
    'Responds once the API listens no more. Then the backend stops, and settings, data, extensions, logs and changes to user files are ' +
    'removed. Existing snapshots stay.',
  body: {
    description: 'Whether to keep downloads; by default they are removed',
    schema: { type: 'object', properties: { keepSystemImages: { type: 'boolean' } } },
    required: false,
  },
  replies: {
    202: { description: 'it begins now', body: 'text', example: TEXTS.factoryReset },
    400: { description: 'invalid body', body: 'text' },
  },
});

/** Registers `PUT /v1/factory_reset`. It responds once nothing listens here any more, then stops the service and removes this installation. */
export function factoryResetRoutes(app: FastifyInstance, port: BackendPort): void {
  const { checkFactoryReset, requestFactoryReset, log } = port;
  app.put('/v1/factory_reset', {
    ...FACTORY_RESET_DOC,
    handler: async (request, reply) => {
      const cache = !keepsDownloads(bytesOf(request));
      checkFactoryReset({ cache });
      log('info', 'factory reset requested over the API', { cache });
      await requestFactoryReset({ cache });
      return reply.code(202).header('Connection', 'close').type(TEXT_TYPE).send(TEXTS.factoryReset);
    },
  });
}

/** Parses whether downloads are kept. Refuses any body that is not understood, because the call is destructive. */
function keepsDownloads(bytes: Buffer): boolean {
  if (bytes.length === 0) return false;
  const body = parseJson(bytes);
  if (!isObject(body)) throw new RdError('ERR_BODY_INVALID', TEXTS.notJson);
  const { keepSystemImages = false, ...others } = body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new RdError('ERR_BODY_INVALID', `unknown field "${unknown}"`, {
      advice: 'Send {"keepSystemImages": true} to keep downloads, or nothing.',
    });
  }
  if (typeof keepSystemImages === 'boolean') return keepSystemImages;
  throw new RdError(
    'ERR_BODY_INVALID',
    `"keepSystemImages" must be true or false, not ${JSON.stringify(keepSystemImages)}`,
  );
}
