import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { EVENT_KINDS, type EventKind } from '../../events/event.ts';
import { isObject } from '../../json.ts';
import { createEventHub, type HubInput } from '../event-hub.ts';
import { schemaOf, withDoc } from '../route-doc.ts';
import { type StatusPort, statusDocument } from './status.ts';

/** The port of the event stream, which includes the status. */
export interface EventsPort extends StatusPort, Omit<HubInput, 'status'> {}

/** Registers `GET /v2/events`: server-sent events (WHATWG HTML, 9.2). docs/events.md describes kinds, ids and heartbeats. */
export function eventRoutes(app: FastifyInstance, port: EventsPort): void {
  const { events, onStatus, streams, clock, log } = port;
  const hub = createEventHub({
    ...{ events, onStatus, streams, clock, log },
    status: () => JSON.stringify(statusDocument(port)),
  });
  const admit = createStreamLimit();
  const doc = withDoc({
    scope: 'read',
    summary: 'Stream what happens: changes, their outcomes, steps, drift, and the status',
    description:
      'Server-sent events. Events named `status` have the document of `GET /v2/status`, the others that of `schemas/event.json`. Ends when the service stops.',
    query: { kinds: { description: `Comma-separated: ${EVENT_KINDS.join(', ')}; or \`all\`. Default: status` } },
    headers: { 'Last-Event-ID': 'The `id` of the last event that was received: the stream continues after it' },
    replies: {
      200: { description: '`text/event-stream`; the data of each event', body: 'text', schema: schemaOf('Event') },
      400: { description: 'an unknown kind', body: 'json', schema: schemaOf('Error') },
      429: { description: 'too many streams of this caller', body: 'json', schema: schemaOf('Error') },
    },
  });
  // The response to a HEAD would never end.
  app.get('/v2/events', { ...doc, exposeHeadRoute: false }, (request, reply) => {
    const kinds = kindsIn(request.query);
    const id = request.headers['last-event-id'];
    admit(request.token?.name, reply.raw);
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    hub.open(raw, kinds, typeof id === 'string' && id !== '' ? id : undefined);
  });
}

/** Parses the requested kinds. The default is `status` alone, which readers of earlier releases expect. */
function kindsIn(query: unknown): ReadonlySet<EventKind> {
  const given: unknown = isObject(query) ? query.kinds : undefined;
  const words = [given ?? 'status'].flat().flatMap((value) => String(value).split(','));
  if (words.includes('all')) return new Set(EVENT_KINDS);
  const unknown = words.find((word) => !EVENT_KINDS.some((kind) => kind === word));
  if (unknown === undefined) return new Set(EVENT_KINDS.filter((kind) => words.includes(kind)));
  throw new RdError('ERR_BODY_INVALID', `there is no kind of events ${JSON.stringify(unknown)}`, {
    advice: `Use some of ${EVENT_KINDS.join(', ')}, or all.`,
  });
}

/** Open streams that one caller may have. Each takes a connection, and the service has a limited number of them. */
export const MOST_STREAMS = 128;

/** Creates the limit of open streams for each caller: the name of a token, or undefined for full credentials. */
export function createStreamLimit() {
  const open = new Map<string | undefined, number>();
  /** Admits a stream, which counts until its connection is closed. @throws RdError `ERR_TOO_MANY`. */
  return function admit(caller: string | undefined, reply: Pick<ServerResponse, 'once'>): void {
    const own = open.get(caller) ?? 0;
    if (own >= MOST_STREAMS) {
      throw new RdError('ERR_TOO_MANY', `${own} event streams of this caller are open already`, {
        advice: 'Close some of them, or have their programs share one.',
      });
    }
    open.set(caller, own + 1);
    reply.once('close', () => {
      const left = (open.get(caller) ?? 1) - 1;
      if (left > 0) open.set(caller, left);
      else open.delete(caller);
    });
  };
}
