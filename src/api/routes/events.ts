import type { FastifyInstance } from 'fastify';
import type { ApiContext } from '../context.ts';
import { documented } from '../route-doc.ts';
import { statusDocument } from './status.ts';

/**
 * `GET /v2/events`: server-sent events (WHATWG HTML, 9.2). There is one kind, `status`, whose data is the document of `GET /v2/status` on
 * a line: first as it is now, then whenever it has changed. A reader that is slow misses states in between, never the last one.
 */
export function eventRoutes(app: FastifyInstance, context: ApiContext): void {
  const doc = documented({
    summary: 'The status now, and again whenever it changes',
    description:
      'Server-sent events named `status`; the data of each is the document of `GET /v2/status`. Ends when the service does.',
    replies: { 200: { description: 'always; `text/event-stream`', body: 'text' } },
  });
  // A HEAD would never end.
  app.get('/v2/events', { ...doc, exposeHeadRoute: false }, (_request, reply) => {
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    let last = '';
    const send = () => {
      if (raw.writableNeedDrain) return;
      const text = JSON.stringify(statusDocument(context));
      if (text === last) return;
      last = text;
      raw.write(`event: status\ndata: ${text}\n\n`);
    };
    const unsubscribe = context.onStatus(send);
    raw.on('drain', send);
    const end = () => raw.end();
    context.streams.add(end);
    raw.once('close', () => {
      unsubscribe();
      context.streams.delete(end);
    });
    send();
  });
}
