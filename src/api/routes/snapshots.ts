import type { FastifyInstance, FastifyRequest } from 'fastify';
import { RdError } from '../../errors.ts';
import type { Snapshots } from '../../features/snapshots/contract.ts';
import { isObject } from '../../json.ts';
import { bytesOf, parseJson } from '../body.ts';
import { withDoc } from '../route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

const RECORD = {
  type: 'object',
  required: ['created', 'name', 'description'],
  properties: {
    created: { description: 'RFC 3339 with up to nine digits of a second and the local offset.', type: 'string' },
    name: { type: 'string' },
    description: { description: 'Empty if there is none.', type: 'string' },
    foreign: { description: 'It was not made in this home, or was changed since. Otherwise absent.', const: true },
  },
};
const REFUSED = {
  description: 'refused or failed; nothing was changed, and the body says why',
  body: 'text',
} as const;
const NAME_QUERY = { name: { description: 'Name of the snapshot.', required: true } };

const LIST_DOC = withDoc({
  scope: 'read',
  summary: 'List the complete snapshots, oldest first',
  replies: {
    200: { description: 'always', body: 'json', schema: { type: 'array', items: RECORD } },
    500: { description: 'the snapshot directory cannot be read', body: 'text' },
  },
});
const CREATE_DOC = withDoc({
  scope: 'write',
  summary: 'Create a snapshot of the settings and all backend data',
  description:
    'If the driver can copy a running machine, the backend keeps running. Otherwise it is stopped, and returns to its desired state once the files are copied.',
  body: {
    description: 'Name, description, and whether to stop the backend',
    required: true,
    schema: {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', maxLength: 250 },
        description: { type: 'string' },
        stop: { description: 'Stop the backend even if it could keep running.', type: 'boolean', default: false },
      },
    },
  },
  replies: { 200: { description: 'complete', body: 'text', example: TEXTS.snapshotCreated }, 400: REFUSED },
});
const DELETE_DOC = withDoc({
  scope: 'write',
  summary: 'Delete a snapshot',
  query: NAME_QUERY,
  replies: { 200: { description: 'deleted', body: 'text', example: TEXTS.snapshotDeleted }, 400: REFUSED },
});
const RESTORE_DOC = withDoc({
  scope: 'write',
  summary: 'Restore a snapshot',
  description:
    'Returns when the restored state is running, or immediately if the backend should be off. Until then, the previous state is kept; it returns if the operation fails or is canceled.',
  query: {
    ...NAME_QUERY,
    foreign: {
      description:
        'true: restore it although it was not made in this home. What is in it can run its containers with the rights of the engine.',
    },
  },
  replies: { 200: { description: 'restored', body: 'text', example: TEXTS.snapshotRestored }, 400: REFUSED },
});
const CANCEL_DOC = withDoc({
  scope: 'write',
  summary: 'Cancel the snapshot operation in progress',
  description: 'Returns when the operation has been undone; the request that started it gets 400.',
  replies: { 200: { description: 'always', body: 'text', example: TEXTS.snapshotCanceled } },
});

/** The port of the snapshot routes. */
export interface SnapshotsPort {
  snapshots: Snapshots;
}

/** Registers `/v1/snapshots` and `/v1/snapshot/restore`. */
export function snapshotRoutes(app: FastifyInstance, { snapshots }: SnapshotsPort): void {
  app.get('/v1/snapshots', LIST_DOC, async (_request, reply) =>
    reply.type(JSON_TYPE).send(JSON.stringify(await snapshots.list())),
  );

  app.post('/v1/snapshots', CREATE_DOC, async (request, reply) => {
    const { name, description, stop } = parseSnapshot(bytesOf(request));
    await snapshots.create(name, description, { stop });
    return reply.type(TEXT_TYPE).send(TEXTS.snapshotCreated);
  });

  app.delete('/v1/snapshots', DELETE_DOC, async (request, reply) => {
    await snapshots.remove(nameInQuery(request));
    return reply.type(TEXT_TYPE).send(TEXTS.snapshotDeleted);
  });

  app.post('/v1/snapshot/restore', RESTORE_DOC, async (request, reply) => {
    await snapshots.restore(nameInQuery(request), { foreign: consentInQuery(request) });
    return reply.type(TEXT_TYPE).send(TEXTS.snapshotRestored);
  });

  app.post('/v1/snapshots/cancel', CANCEL_DOC, async (_request, reply) => {
    await snapshots.cancel();
    return reply.type(TEXT_TYPE).send(TEXTS.snapshotCanceled);
  });
}

/** Parses a snapshot request, ignoring unknown members. */
function parseSnapshot(bytes: Buffer): { name: string; description: string; stop: boolean } {
  const value = parseJson(bytes);
  const { name, description, stop = false } = isObject(value) ? value : {};
  if (!name) throw new RdError('ERR_BODY_INVALID', TEXTS.snapshotNameNeeded);
  if (typeof name !== 'string') throw notAString(name);
  if (description !== undefined && description !== null && typeof description !== 'string') {
    throw new RdError('ERR_BODY_INVALID', `Invalid snapshot description ${JSON.stringify(description)}: not a string.`);
  }
  if (typeof stop !== 'boolean') {
    throw new RdError('ERR_BODY_INVALID', `Invalid value of stop ${JSON.stringify(stop)}: neither true nor false.`);
  }
  return { name, description: description ?? '', stop };
}

function nameInQuery({ query }: FastifyRequest): string {
  const name = isObject(query) ? query.name : undefined;
  if (name === undefined || name === '') throw new RdError('ERR_BODY_INVALID', TEXTS.snapshotNameInQuery);
  if (typeof name !== 'string') throw notAString(name);
  return name;
}

function consentInQuery({ query }: FastifyRequest): boolean {
  const foreign = isObject(query) ? query.foreign : undefined;
  if (foreign === undefined || foreign === 'false') return false;
  if (foreign === 'true') return true;
  throw new RdError('ERR_BODY_INVALID', `Invalid value of foreign ${JSON.stringify(foreign)}: neither true nor false.`);
}

function notAString(name: unknown): RdError {
  return new RdError('ERR_BODY_INVALID', `Invalid snapshot name ${JSON.stringify(name)}: not a string.`);
}
