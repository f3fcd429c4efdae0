import { join } from 'node:path';
import type { Driver } from '../drivers/driver.ts';
import { forwardFile } from '../features/port-forwards/forward.ts';
import { createPortForwards, type ForwardsInput, type PortForwards } from '../features/port-forwards/manager.ts';
import { systemClock } from '../os/clock.ts';
import { FORWARDS_PATH, type RecordedChange } from '../plan/history.ts';
import { forwardKeyOf, noCluster } from '../plan/port-forwards.ts';
import type { DesiredStore } from '../state/desired-store.ts';
import type { Places } from '../state/places.ts';
import type { ServiceHistory } from './history.ts';
import type { Transactions } from './transactions/contract.ts';

interface Parts extends Pick<ForwardsInput, 'controllers' | 'log' | 'notice' | 'onChange'> {
  places: Pick<Places, 'state'>;
  driver: Driver;
  store: Pick<DesiredStore, 'write'>;
  history: Pick<ServiceHistory, 'unfinished' | 'finished'>;
  transactions: Pick<Transactions, 'report' | 'wasRolledBack'>;
}

/**
 * Opens the port forwards of this home, and completes changes that a killed service had announced. The file is in the state directory, because
 * forwards belong to this machine, not to the settings. Throws `ERR_IO`.
 */
export async function openPortForwards({
  places,
  driver,
  store,
  history,
  transactions,
  ...rest
}: Parts): Promise<PortForwards> {
  const portForwards = await createPortForwards({
    ...rest,
    store: forwardFile(join(places.state, 'port-forwards.json')),
    cluster: driver.cluster,
    noCluster: noCluster(driver.name),
    clock: systemClock,
    async announce({ name, ...values }, by) {
      const change: RecordedChange = { path: FORWARDS_PATH, key: name, ...values };
      const { now } = await store.write(() => ({ announced: [change], answer: undefined, by }));
      return (failure) => history.finished(now.desired.generation, failure);
    },
  });
  const { unfinished } = history;
  if (!unfinished) return portForwards;
  const { generation, forwards } = unfinished;
  const finish = async () => {
    const failure = await failureOf(complete(portForwards, forwards));
    if (failure) rest.log('warn', 'port forwards of the last service could not be completed', { error: failure });
    history.finished(generation, failure);
  };
  // The forwards of an apply that may still be undone follow once the backend has converged.
  if (transactions.report()?.generation !== generation) await finish();
  else
    void transactions.wasRolledBack(generation, new AbortController().signal).then((wasRolledBack) => {
      if (!wasRolledBack) return finish();
    });
  return portForwards;
}

/** Completes changes; host ports that are given up come first. */
async function complete(portForwards: PortForwards, changes: readonly RecordedChange[]): Promise<void> {
  const taken = new Set(changes.map(({ after }) => after));
  for (const { key = '', before } of changes) {
    if (typeof before === 'number' && taken.has(before)) await portForwards.remove(forwardKeyOf(key));
  }
  for (const { key = '', after } of changes) {
    const forward = forwardKeyOf(key);
    if (typeof after === 'number') await portForwards.ensure({ ...forward, hostPort: after }, 'later');
    else await portForwards.remove(forward);
  }
}

async function failureOf(work: Promise<void>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}
