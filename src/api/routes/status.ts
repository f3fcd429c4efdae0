import type { FastifyInstance } from 'fastify';
import type { Driver, DriverInfo } from '../../drivers/driver.ts';
import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import { defined, indentedJson } from '../../json.ts';
import { PRODUCT } from '../../product.ts';
import type { Controllers } from '../../reconcile/contract.ts';
import {
  type StatusDocument,
  type TransactionReport,
  type WriteCounters,
  withContainers,
} from '../../reconcile/status-document.ts';
import type { Applies } from '../../service/applies.ts';
import type { Watch } from '../../service/watch/watch.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import { schemaOf, withDoc } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** Facts that do not change while the service runs. */
export interface ServiceFacts {
  version: string;
  pid: number;
  port: number;
  home: string;
  /** Start time in RFC 3339. */
  startedAt: string;
  /** Why this driver was chosen, as text for display. */
  driverReason: string;
  notices: readonly string[];
  /** The file or registry key of the locked profile. */
  lockedBy?: string;
  /** The file or registry key of the defaults profile, whether it was applied or not. */
  defaultsBy?: string;
}

/** The sources of the status document. */
export interface StatusPort {
  about: ServiceFacts;
  driver: DriverInfo & Pick<Driver, 'access' | 'published'>;
  controllers: Pick<Controllers, 'status'>;
  store: Pick<DesiredStore, 'snapshot'>;
  counters: Readonly<WriteCounters>;
  userFiles: Pick<FollowingIntegration, 'report' | 'conditions'>;
  watch: Pick<Watch, 'status' | 'conditions' | 'notices'>;
  applies: Pick<Applies, 'report'>;
  /** The last apply that would be undone if it failed. */
  transaction(): TransactionReport | undefined;
  /** The operation on the backend's data, such as a snapshot, as a sentence; undefined if there is none. */
  maintenance(): string | undefined;
}

/** Registers `GET /v2/status`: the document of `schemas/status.json`. */
export function statusRoutes(app: FastifyInstance, port: StatusPort): void {
  const doc = withDoc({
    scope: 'read',
    summary: 'Get the service, the desired state and the observed state',
    replies: { 200: { description: 'always', body: 'json', schema: schemaOf('Status') } },
  });
  app.get('/v2/status', doc, (_request, reply) => {
    reply.type(JSON_TYPE).send(indentedJson(statusDocument(port)));
  });
}

/** Assembles the status document of the route and of the event stream. */
export function statusDocument(port: StatusPort): StatusDocument {
  const { about, driver, controllers, store, counters, userFiles } = port;
  const maintenance = port.maintenance();
  const apply = port.applies.report();
  const transaction = port.transaction();
  const kept = port.watch.status();
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
    conditions: [...loop.conditions, ...port.watch.conditions(), ...userFiles.conditions()],
    engine: {
      name,
      state: wanted.state,
      ...(wanted.state === 'running'
        ? { endpoint: wanted.endpoint, version: wanted.version, workload: wanted.workload }
        : {}),
    },
    ...defined({ access }),
    ...(ports === undefined ? {} : { ports: withContainers(ports, loop.engines) }),
    ...defined({ maintenance, apply, transaction }),
    ...(kept.length === 0 ? {} : { kept }),
    counters: { ...loop.counters, ...counters },
    ...(lockedBy === undefined && defaultsBy === undefined
      ? {}
      : {
          policies: {
            ...defined({ lockedBy, defaultsBy }),
          },
        }),
    hostIntegration: userFiles.report(),
    notices: [...about.notices, ...port.watch.notices()],
  };
}
