import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { EVENT_KINDS, type EventKind } from '../../events/event.ts';
import { isObject } from '../../json.ts';
import type { ApiContext } from '../context.ts';
import { createEventHub } from '../event-hub.ts';
import { documented, schemaOf } from '../route-doc.ts';
import { createStreamLimit } from '../stream-limit.ts';
import { statusDocument } from './status.ts';

/** `GET /v2/events`: server-sent events (WHATWG HTML, 9.2). docs/events.md describes kinds, ids and heartbeats. */
export function eventRoutes(app: FastifyInstance, context: ApiContext): void {
  const { events, onStatus, streams, clock, log } = context;
  const hub = createEventHub({
    ...{ events, onStatus, streams, clock, log },
    status: () => JSON.stringify(statusDocument(context)),
  });
  const admit = createStreamLimit();
  const doc = documented({
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

/** Readers of earlier releases expect `status` alone. */
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
