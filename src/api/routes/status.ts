import type { FastifyInstance } from 'fastify';
import { indentedJson } from '../../json.ts';
import { PRODUCT } from '../../product.ts';
import { withContainers } from '../../reconcile/published-ports.ts';
import type { StatusDocument } from '../../reconcile/status-document.ts';
import type { ApiContext } from '../context.ts';
import { documented, schemaOf } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** `GET /v2/status`: the document of `schemas/status.json`. */
export function statusRoutes(app: FastifyInstance, context: ApiContext): void {
  const doc = documented({
    scope: 'read',
    summary: 'Get the service, the desired state and the observed state',
    replies: { 200: { description: 'always', body: 'json', schema: schemaOf('Status') } },
  });
  app.get('/v2/status', doc, (_request, reply) => {
    reply.type(JSON_TYPE).send(indentedJson(statusDocument(context)));
  });
}

function statusDocument(context: ApiContext): StatusDocument {
  const { about, driver, controllers, store, counters, hostIntegration } = context;
  const maintenance = context.maintenance();
  const apply = context.applies.report();
  const transaction = context.transaction();
  const kept = context.watch.status();
  const { lockedBy, defaultsBy } = about;
  const loop = controllers.status();
  const { name } = store.snapshot().desired.settings.containerEngine;
  const wanted = loop.engines[name];
  const isOn = loop.machine.state === 'on';
  const access = isOn ? driver.access?.() : undefined;
  const ports = isOn ? driver.published?.() : undefined;
  return {
    kind: 'Status',
    formatVersion: 1,
    product: PRODUCT.name,
    version: about.version,
    pid: about.pid,
    home: about.home,
    startedAt: about.startedAt,
    driver: { name: driver.name, simulated: driver.simulated, reason: about.driverReason },
    ...loop,
    conditions: [...loop.conditions, ...context.watch.conditions()],
    engine: {
      name,
      state: wanted.state,
      ...(wanted.state === 'running'
        ? { endpoint: wanted.endpoint, version: wanted.version, workload: wanted.workload }
        : {}),
    },
    ...(access === undefined ? {} : { access }),
    ...(ports === undefined ? {} : { ports: withContainers(ports, loop.engines) }),
    ...(maintenance === undefined ? {} : { maintenance }),
    ...(apply === undefined ? {} : { apply }),
    ...(transaction === undefined ? {} : { transaction }),
    ...(kept.length === 0 ? {} : { kept }),
    counters: { ...loop.counters, ...counters },
    ...(lockedBy === undefined && defaultsBy === undefined
      ? {}
      : {
          policies: {
            ...(lockedBy === undefined ? {} : { lockedBy }),
            ...(defaultsBy === undefined ? {} : { defaultsBy }),
          },
        }),
    hostIntegration: hostIntegration(),
    notices: [...about.notices, ...context.watch.notices()],
  };
}

/** Milliseconds: notices, user files and the progress of a snapshot change without an event of the loop. */
const RECHECK_MS = 1_000;

/**
 * `GET /v2/events`: server-sent events (WHATWG HTML, 9.2). The only kind, `status`, has the document of `GET /v2/status` on
 * one line: the current one first, then every change, at most a second later. A slow reader skips intermediate states,
 * never the last one.
 */
export function eventRoutes(app: FastifyInstance, context: ApiContext): void {
  const doc = documented({
    scope: 'read',
    summary: 'Stream the status: now, and on every change',
    description:
      'Server-sent events named `status`; the data of each is the document of `GET /v2/status`. Ends when the service stops.',
    replies: { 200: { description: 'always; `text/event-stream`', body: 'text' } },
  });
  // The response to a HEAD would never end.
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
    const recheck = setInterval(send, RECHECK_MS).unref();
    const end = () => raw.end();
    context.streams.add(end);
    raw.once('close', () => {
      unsubscribe();
      clearInterval(recheck);
      context.streams.delete(end);
    });
    send();
  });
}
