import type { PublishedPort } from '../drivers/driver.ts';
import type { LoopStatus } from './contract.ts';
import type { StatusDocument } from './status.gen.ts';

export type { MachineAccess, MachineStart } from '../drivers/driver.ts';
export type { ApplyReply } from '../plan/apply.gen.ts';
export type { KeptStatus } from '../plan/kept.gen.ts';
export type { ApplyStep, ApplyWork, StatusDocument, TransactionReport } from './status.gen.ts';

/** Counts the requests that write settings since the service started, and those that changed one. */
export type WriteCounters = Pick<StatusDocument['counters'], 'settingsPuts' | 'settingsWrites'>;

/** Adds to the ports of a machine the container that publishes each, as far as engines know it and the machine does not. Pure. */
export function withContainers(ports: readonly PublishedPort[], engines: LoopStatus['engines']): PublishedPort[] {
  const names = new Map(
    Object.values(engines).flatMap((engine) =>
      (engine.state === 'running' ? (engine.workload.running ?? []) : []).flatMap(({ name, ports: own = [] }) =>
        own.map(({ protocol, port }) => [`${protocol} ${port}`, name] as const),
      ),
    ),
  );
  return ports.map(({ protocol, port, state, ...rest }) => {
    const name = names.get(`${protocol} ${port}`);
    // In the middle, because members keep the order of the document.
    return { protocol, port, state, ...(name === undefined ? {} : { claimedBy: `container ${name}` }), ...rest };
  });
}
