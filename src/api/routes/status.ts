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

/** The one place where the document is made. */
export function statusDocument(context: ApiContext): StatusDocument {
  const { about, driver, controllers, store, counters, userFiles } = context;
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
    conditions: [...loop.conditions, ...context.watch.conditions(), ...userFiles.conditions()],
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
    hostIntegration: userFiles.report(),
    notices: [...about.notices, ...context.watch.notices()],
  };
}
