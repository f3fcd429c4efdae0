import type { FastifyInstance, FastifyRequest } from 'fastify';
import { RdError } from '../../errors.ts';
import type { PortForwards } from '../../features/port-forwards/manager.ts';
import { indentedJson, isObject, type JsonObject } from '../../json.ts';
import { authorOf } from '../author.ts';
import { bytesOf, parseJson } from '../body.ts';
import { type JsonSchema, withDoc } from '../route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

const KEYS = ['namespace', 'service', 'k8sPort'] as const;

const PORT = { type: 'integer', minimum: 1, maximum: 65_535 };
const NAMES = {
  namespace: { type: 'string' },
  service: { type: 'string' },
  k8sPort: { description: 'Number or name of the service port.', anyOf: [PORT, { type: 'string' }] },
};
const FORWARD: JsonSchema = {
  type: 'object',
  required: [...KEYS, 'hostPort'],
  properties: {
    ...NAMES,
    hostPort: {
      description: 'Number, or a string of digits.',
      anyOf: [
        { type: 'integer', minimum: 0, maximum: 65_535 },
        { type: 'string', pattern: '^[0-9]{1,6}$' },
      ],
    },
  },
};
const ENTRY: JsonSchema = {
  type: 'object',
  required: [...KEYS, 'hostPort', 'state', 'connections'],
  properties: {
    ...NAMES,
    hostPort: PORT,
    state: { enum: ['listening', 'waiting', 'failed'] },
    reason: { description: 'Why it is not listening.', type: 'string' },
    connections: { type: 'integer', minimum: 0 },
    lastError: { description: 'Error of the last failed connection.', type: 'string' },
  },
};
const LIST: JsonSchema = {
  type: 'object',
  required: ['kind', 'formatVersion', 'supported', 'portForwards'],
  properties: {
    kind: { const: 'PortForwards' },
    formatVersion: { const: 1 },
    supported: { description: 'False if the driver has no reachable cluster.', type: 'boolean' },
    reason: { type: 'string' },
    portForwards: { type: 'array', items: ENTRY },
  },
};

/** The port of the port forward routes. */
export interface PortForwardsPort {
  portForwards: Pick<PortForwards, 'ensure' | 'remove' | 'list'>;
}

/**
 * Registers the port forwards: local ports that lead to services of the cluster. Only the list under `/v2` is not part of the compatible interface.
 */
export function portForwardRoutes(app: FastifyInstance, { portForwards }: PortForwardsPort): void {
  app.post(
    '/v1/port_forwarding',
    withDoc({
      scope: 'write',
      summary: 'Forward a local port to a service of the cluster',
      description:
        'An existing forward of the same service port moves to the new host port. Success does not mean that anything serves the port; each connection looks that up.',
      body: { description: '`hostPort` 0 means any free port.', schema: FORWARD, required: true },
      replies: {
        200: { description: 'the port is listening; the body is its number', body: 'text', example: '8080' },
        400: {
          description: 'the port cannot be forwarded; the body says why',
          body: 'text',
          example: TEXTS.cannotForward,
        },
      },
    }),
    async (request, reply) => {
      const body = forwardBody(request);
      const { hostPort } = await portForwards.ensure(body, 'now', authorOf(request)).catch((error: unknown) => {
        throw forwardError(error);
      });
      return reply.type(TEXT_TYPE).send(String(hostPort));
    },
  );

  app.delete(
    '/v1/port_forwarding',
    withDoc({
      scope: 'write',
      summary: 'Stop forwarding to a service of the cluster',
      query: {
        namespace: { description: 'Namespace of the service', required: true },
        service: { description: 'Name of the service', required: true },
        k8sPort: { description: 'Number or name of its port', required: true },
      },
      replies: {
        200: {
          description: 'the forward was removed, or did not exist',
          body: 'text',
          example: TEXTS.forwardDeleted,
        },
        400: { description: 'a parameter is missing or repeated, or the change cannot be stored', body: 'text' },
      },
    }),
    async (request, reply) => {
      await portForwards.remove(forwardOf(request), authorOf(request)).catch((cause: unknown) => {
        throw new RdError('ERR_BODY_INVALID', `${TEXTS.cannotDeleteForward}${reasonOf(cause)}`, { cause });
      });
      return reply.type(TEXT_TYPE).send(TEXTS.forwardDeleted);
    },
  );

  app.get(
    '/v2/port_forwards',
    withDoc({
      scope: 'read',
      summary: 'List the desired port forwards and their state',
      replies: { 200: { description: 'always', body: 'json', schema: LIST } },
    }),
    (_request, reply) => {
      reply.type(JSON_TYPE).send(indentedJson(portForwards.list()));
    },
  );

  app.post(
    '/v2/port_forwards',
    withDoc({
      scope: 'write',
      summary: 'Set a port forward, even if the cluster is not running',
      description:
        'Like `POST /v1/port_forwarding`, but the cluster may be off: the forward then opens when the cluster starts.',
      body: { description: '`hostPort` 0 needs a running cluster.', schema: FORWARD, required: true },
      replies: {
        200: { description: 'the forward is stored', body: 'json', schema: ENTRY },
        400: { description: 'the body is not a forward, or the driver has no cluster', body: 'json' },
        403: { description: 'the user may not open this port, or there are too many forwards', body: 'json' },
        409: { description: 'the local port is in use', body: 'json' },
        503: { description: 'port 0 was requested, and the cluster is not running', body: 'json' },
      },
    }),
    async (request, reply) => {
      const entry = await portForwards.ensure(forwardBody(request), 'later', authorOf(request));
      return reply.type(JSON_TYPE).send(indentedJson(entry));
    },
  );
}

/** Parses the body, with all keys. The compatible application treats an array as an object without any of them. */
function forwardBody(request: FastifyRequest): JsonObject {
  const value = parseJson(bytesOf(request));
  if (!isObject(value) && !Array.isArray(value)) throw new RdError('ERR_BODY_INVALID', TEXTS.notJson);
  if (isObject(value) && [...KEYS, 'hostPort'].every((key) => Object.hasOwn(value, key))) return value;
  throw new RdError('ERR_BODY_INVALID', TEXTS.missingParameters);
}

/** Parses the forward in the query. Missing parameters are reported before repeated ones. */
function forwardOf({ query }: FastifyRequest): Record<(typeof KEYS)[number], string> {
  const given: JsonObject = isObject(query) ? query : {};
  const missing = KEYS.find((name) => !given[name]);
  if (missing !== undefined) {
    throw new RdError('ERR_BODY_INVALID', `Port forwarding ${missing} is required in query parameters`);
  }
  const text = (name: (typeof KEYS)[number]): string => {
    const value = given[name];
    if (typeof value === 'string') return value;
    throw new RdError('ERR_BODY_INVALID', `Invalid port forwarding ${name} ${JSON.stringify(value)}: not a string.`);
  };
  return { namespace: text('namespace'), service: text('service'), k8sPort: text('k8sPort') };
}

/** Turns an error into a 400 with the sentence of the compatible application, then the reason. */
function forwardError(cause: unknown): unknown {
  if (!(cause instanceof RdError)) return cause;
  const code = systemCode(cause);
  // Clients display an unknown error only in this form.
  const text = cause.code === 'ERR_IO' && code ? `; error code: ${code}` : reasonOf(cause);
  return new RdError('ERR_BODY_INVALID', `${TEXTS.cannotForward}${text}`, { cause });
}

function reasonOf(cause: unknown): string {
  return cause instanceof RdError ? `: ${cause.message}` : '';
}

function systemCode({ cause }: RdError): string | undefined {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
}
