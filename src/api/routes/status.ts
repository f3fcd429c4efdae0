import type { FastifyInstance } from 'fastify';
import { PRODUCT } from '../../product.ts';
import type { StatusDocument } from '../../reconcile/status-document.ts';
import type { ApiContext } from '../context.ts';
import { documented, schemaOf } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** `GET /v2/status`: the document of `schemas/status.json`. */
export function statusRoutes(app: FastifyInstance, context: ApiContext): void {
  const doc = documented({
    summary: 'Who is speaking, what is wanted and what is',
    replies: { 200: { description: 'always', body: 'json', schema: schemaOf('Status') } },
  });
  app.get('/v2/status', doc, (_request, reply) => {
    reply.type(JSON_TYPE).send(`${JSON.stringify(statusDocument(context), null, 2)}\n`);
  });
}

/** The status as it is now. */
export function statusDocument(context: ApiContext): StatusDocument {
  const { about, driver, controllers, store, counters, hostIntegration } = context;
  const maintenance = context.maintenance();
  const apply = context.applies.report();
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
    engine: {
      name,
      state: wanted.state,
      ...(wanted.state === 'running'
        ? { endpoint: wanted.endpoint, version: wanted.version, workload: wanted.workload }
        : {}),
    },
    ...(access === undefined ? {} : { access }),
    ...(ports === undefined ? {} : { ports }),
    ...(maintenance === undefined ? {} : { maintenance }),
    ...(apply === undefined ? {} : { apply }),
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
    notices: [...about.notices],
  };
}
