import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyHttpOptions, FastifyInstance, FastifyRequest } from 'fastify';
import fastify from 'fastify';
import { RdError } from '../errors.ts';
import { bodyCollector, parseJson } from './body.ts';
import { createErrorHandler, pathOf } from './error-handler.ts';
import { createGuard } from './guard.ts';
import { collectRoutes } from './route-doc.ts';
import {
  type BackendPort,
  backendStateRoutes,
  factoryResetRoutes,
  k8sResetRoutes,
  shutdownRoutes,
} from './routes/backend.ts';
import { type DiagnosticsPort, diagnosticsRoutes } from './routes/diagnostics.ts';
import { type EventsPort, eventRoutes } from './routes/events.ts';
import { type ExtensionsPort, extensionRoutes } from './routes/extensions.ts';
import { type HistoryPort, historyRoutes } from './routes/history.ts';
import { type KeptPort, keptRoutes } from './routes/kept.ts';
import { type LayersPort, layerRoutes } from './routes/layers.ts';
import { aboutRoutes, listingRoutes, type OpenApiPort, olderVersionRoutes, openApiRoutes } from './routes/listings.ts';
import { type MetricsPort, measureRequests, metricsRoutes } from './routes/metrics.ts';
import { applyRoutes, type PlansPort, planRoutes } from './routes/plans.ts';
import { type PortForwardsPort, portForwardRoutes } from './routes/port-forwards.ts';
import { type ProofPort, proofRoutes } from './routes/proof.ts';
import { proposalRoutes, type SettingsPort, settingsRoutes } from './routes/settings.ts';
import { type SnapshotsPort, snapshotRoutes } from './routes/snapshots.ts';
import { statusRoutes } from './routes/status.ts';
import { type TransientPort, transientSettingsRoutes } from './routes/transient-settings.ts';
import { type Access, createTokenGuard, createTokenReplies, type TokenPort } from './token-guard.ts';
import { BODY_LIMIT, TEXT_TYPE } from './wire-texts.ts';

/** A path of no route, which no client can send without an escape. */
const NOWHERE = '/ nowhere';

/** The ports of all routes, and the admission of requests. The composition root provides them. */
export type ApiPorts = AdmissionPort &
  BackendPort &
  DiagnosticsPort &
  EventsPort &
  ExtensionsPort &
  HistoryPort &
  KeptPort &
  LayersPort &
  MetricsPort &
  OpenApiPort &
  PlansPort &
  PortForwardsPort &
  ProofPort &
  SettingsPort &
  SnapshotsPort &
  TransientPort;

/** Decides which requests are admitted without a token. */
interface AdmissionPort extends TokenPort {
  credentials: { user: string; password: string };
  /** Names that the Host header may have, besides `localhost` and IP addresses. */
  allowHosts: readonly string[];
}

/**
 * Builds the API with all of its routes. It does not listen: it handles the requests of `server`, or injected ones. `ready()` must have resolved
 * before the first one.
 */
export function createApp(ports: ApiPorts, server?: Server): FastifyInstance {
  const options: FastifyHttpOptions<Server> = {
    // Writes and failures are logged where they happen.
    logger: false,
    bodyLimit: BODY_LIMIT,
    ...(server ? { serverFactory: (handler) => server.on('request', handler) } : {}),
    exposeHeadRoutes: true,
    clientErrorHandler: sendParserError,
    // Fastify would decode escapes before matching; the compatible interface matches the path as sent.
    rewriteUrl: (raw) => (isRoutable(raw.url) ? (raw.url ?? '/') : NOWHERE),
    routerOptions: { caseSensitive: false, ignoreTrailingSlash: true },
    // Fastify's defaults for Ajv would turn "8" into 8, drop unknown keys and add defaults.
    ajv: { customOptions: { removeAdditional: false, useDefaults: false, coerceTypes: false, allErrors: true } },
  };
  const app = fastify(options);
  const { allowHosts } = ports;
  const guard = createGuard({ ...ports.credentials, allowHosts, tokens: createTokenGuard(ports) });
  const tokenReplies = createTokenReplies();
  app.decorateRequest('token');

  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request;
    if (raw.method === 'OPTIONS') {
      reply.code(204).send();
      return;
    }
    // Any media type is accepted, even an invalid one: bodies are always read as bytes.
    if (raw.method !== 'GET') raw.headers['content-type'] = 'application/octet-stream';
    const enter = (access: Access) => {
      if (access.refusal) {
        if (access.challenge !== undefined) reply.header('WWW-Authenticate', access.challenge);
        // Unauthorized bodies are not read; otherwise Node would drain them.
        if (hasBody(raw)) reply.header('Connection', 'close');
        done(access.refusal);
        return;
      }
      request.token = access.token;
      if (access.token) tokenReplies.add(access.token, reply.raw);
      done();
    };
    const access = guard(request);
    if (access instanceof Promise) access.then(enter, done);
    else enter(access);
  });
  const collectBody = bodyCollector();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request: FastifyRequest, payload: IncomingMessage) =>
    collectBody(payload, lengthOf(payload)),
  );

  const handleError = createErrorHandler(ports.refusals);
  app.setErrorHandler(handleError);
  app.setNotFoundHandler((request, reply) =>
    handleError(unknownCommand(request.method, pathOf(request)), request, reply),
  );

  measureRequests(app, ports);
  const described = collectRoutes(app);
  listingRoutes(app);
  aboutRoutes(app);
  settingsRoutes(app, ports);
  proposalRoutes(app, ports);
  backendStateRoutes(app, ports);
  shutdownRoutes(app, ports);
  factoryResetRoutes(app, ports);
  portForwardRoutes(app, ports);
  transientSettingsRoutes(app, ports);
  diagnosticsRoutes(app, ports);
  snapshotRoutes(app, ports);
  k8sResetRoutes(app, ports);
  extensionRoutes(app, ports);
  olderVersionRoutes(app);
  keptRoutes(app, ports);
  statusRoutes(app, ports);
  eventRoutes(app, ports);
  proofRoutes(app, ports);
  layerRoutes(app, ports);
  historyRoutes(app, ports);
  metricsRoutes(app, ports);
  openApiRoutes(app, ports, described);
  // A separate scope, in which bodies are parsed and validated against a schema.
  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', async (_request: FastifyRequest, payload: IncomingMessage) =>
      parseJson(await collectBody(payload, lengthOf(payload))),
    );
    planRoutes(scope, ports);
    applyRoutes(scope, ports);
    done();
  });
  return app;
}

function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || lengthOf({ headers }) > 0;
}

/** The declared length of the body in bytes; 0 for a chunked body. */
function lengthOf({ headers }: Pick<IncomingMessage, 'headers'>): number {
  return Number(headers['content-length'] ?? 0);
}

/** False for a URL that the router would change before matching: `*`, or an escape or a fragment in the path. */
function isRoutable(url = '/'): boolean {
  if (url.startsWith('*')) return false;
  const at = url.search(/[%#?]/);
  return at < 0 || url[at] === '?';
}

function unknownCommand(method: string, path: string): RdError {
  try {
    decodeURIComponent(path);
  } catch (cause) {
    return new RdError('ERR_BODY_INVALID', `Malformed escape in the path: ${path}`, { cause });
  }
  return new RdError('ERR_NOT_FOUND', `Unknown command: ${method} ${path}`);
}

/** Status by the parser's error code; 400 for all others. */
const PARSER_STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** Milliseconds that a client has to read why it is refused. */
const LINGER = 100;

/** Responds to an invalid HTTP request in plain text, and closes the connection. */
function sendParserError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  // A client that does not close its side would keep half of the connection, and its descriptor, for as long as it likes.
  setTimeout(() => socket.destroy(), LINGER).unref();
  const status = PARSER_STATUS[error.code ?? ''] ?? 400;
  const text = STATUS_CODES[status] ?? '';
  socket.end(
    [
      `HTTP/1.1 ${status} ${text}`,
      'Connection: close',
      `Content-Type: ${TEXT_TYPE}`,
      `Content-Length: ${text.length}`,
      '',
      text,
    ].join('\r\n'),
  );
}
