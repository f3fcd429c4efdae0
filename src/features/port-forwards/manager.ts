import type { ClusterDriver } from '../../drivers/driver.ts';
import { messageOf, RdError } from '../../errors.ts';
import type { JsonObject } from '../../json.ts';
import type { Clock } from '../../os/clock.ts';
import { SerialQueue } from '../../os/serial-queue.ts';
import type { ForwardKey } from '../../plan/change.ts';
import type { Author } from '../../plan/history.ts';
import { type DesiredForward, type ForwardReport, type ForwardsReport, forwardName } from '../../plan/port-forwards.ts';
import type { Controllers, LoopStatus } from '../../reconcile/contract.ts';
import { type ForwardStore, readForward, readKey } from './forward.ts';
import { type OpenListener, openListener } from './listener.ts';

const MAX_FORWARDS = 200;
const MAX_CONNECTIONS = 500;
const DIAL_LIMIT_MS = 15_000;
/** Retry interval in milliseconds for a port in use. */
const RETRY_MS = 5_000;

export interface ForwardsInput {
  store: ForwardStore;
  /** Connects to the cluster; absent for a driver without one. */
  cluster: Pick<ClusterDriver, 'connect'> | undefined;
  /** Reason why there may be no cluster, as a clause. */
  noCluster: string;
  controllers: Pick<Controllers, 'status' | 'onChange'>;
  clock: Clock;
  log(level: 'debug' | 'info' | 'warn', message: string, values?: Record<string, unknown>): void;
  /** Receives a sentence for the status. */
  notice(text: string): void;
  /** Called after a desired forward was set or removed. */
  onChange?(): void;
  /**
   * Records a change before it is stored. Throws when that fails; the change must not happen then. The returned function records the end, with the
   * failure, if any.
   */
  announce(change: ForwardChange, by: Author): Promise<(failure?: unknown) => void>;
}

/** A forward with its host port before and after; a port is absent if there is no forward. */
interface ForwardChange {
  name: string;
  before?: number;
  after?: number;
}

/** The forwards of a service. They survive restarts, and are open exactly while the cluster responds. */
export interface PortForwards {
  /**
   * Ensures a forward, given as received (`readForward`). A forward of the same service port on another host port moves; `hostPort` 0 always moves
   * it. `now` is refused while the cluster is not running; `later` may wait for the cluster. `by` is the author for the history; absent if the
   * history has the change already, as part of an apply.
   * Throws `ERR_BODY_INVALID`, `ERR_SETTING_UNSUPPORTED` without a cluster, `ERR_NOT_READY`, `ERR_PORT_IN_USE`, `ERR_FORBIDDEN`, `ERR_IO`, each with
   * a clause as its message; the previous state is then unchanged.
   */
  ensure(body: JsonObject, when: 'now' | 'later', by?: Author): Promise<ForwardReport>;
  /**
   * Removes a forward. Returns false when there was none, and for an invalid name. `by` is the author for the history; absent if the history has the
   * change already. Throws `ERR_IO`; the forward then still exists.
   */
  remove(body: Record<keyof ForwardKey, string | number>, by?: Author): Promise<boolean>;
  list(): ForwardsReport;
  /** Closes all ports. The desired forwards stay. */
  close(): Promise<void>;
}

interface Entry {
  desired: DesiredForward;
  listener?: OpenListener;
  failure?: string;
  lastError?: string;
}

/** Loads the desired forwards and follows the cluster until closed. Throws `ERR_IO` when the file cannot be read. */
export async function createPortForwards(input: ForwardsInput): Promise<PortForwards> {
  const { store, cluster, controllers, log } = input;
  const entries = new Map<string, Entry>();
  const closed = new AbortController();
  /** Serializes requests, so that two for one port cannot both get it. */
  const queue = new SerialQueue();
  let retrying = false;

  const stored = await store.load();
  if (stored.notice !== undefined) input.notice(stored.notice);
  for (const desired of stored.desired) entries.set(forwardName(desired), { desired });

  let up = isUp(controllers.status());
  const unsubscribe = controllers.onChange((status) => {
    const now = isUp(status);
    if (now === up) return;
    up = now;
    reconcileLater();
  });
  if (up) reconcileLater();

  function reconcileLater(): void {
    queue
      .run(reconcile)
      .catch((error: unknown) => log('warn', 'port forwards could not follow the cluster', { error }));
  }

  async function reconcile(): Promise<void> {
    for (const entry of entries.values()) {
      if (!up || closed.signal.aborted) await closeListener(entry);
      else if (!entry.listener) await tryOpen(entry);
    }
    retryLater();
  }

  function retryLater(): void {
    const waits = [...entries.values()].some((entry) => entry.failure !== undefined);
    if (retrying || !waits || !up || closed.signal.aborted) return;
    retrying = true;
    input.clock.sleep(RETRY_MS, closed.signal).then(() => {
      retrying = false;
      if (!closed.signal.aborted) reconcileLater();
    });
  }

  async function tryOpen(entry: Entry): Promise<void> {
    try {
      entry.listener = await open(entry, entry.desired.hostPort);
      delete entry.failure;
      log('info', 'port forward opened', { forward: forwardName(entry.desired), hostPort: entry.listener.port });
    } catch (error) {
      if (!(error instanceof RdError)) throw error;
      if (entry.failure !== error.message) {
        log('warn', 'port forward cannot be opened', { forward: forwardName(entry.desired), reason: error.message });
      }
      entry.failure = error.message;
    }
  }

  async function open(entry: Entry, hostPort: number): Promise<OpenListener> {
    const { namespace, service, k8sPort: port } = entry.desired;
    const connect = cluster?.connect;
    if (!connect) throw unsupported(input.noCluster);
    delete entry.lastError;
    return openListener({
      hostPort,
      dial: (signal) => connect({ namespace, service, port }, signal),
      dialLimitMs: DIAL_LIMIT_MS,
      maxConnections: MAX_CONNECTIONS,
      onDialError(error) {
        entry.lastError = messageOf(error);
        log('debug', 'port forward could not reach the service', { forward: forwardName(entry.desired), error });
      },
    });
  }

  async function closeListener(entry: Entry): Promise<void> {
    const { listener } = entry;
    delete entry.listener;
    delete entry.failure;
    await listener?.close();
  }

  /** Saves a change, first to the history, then to the file. */
  async function save(changed: readonly Entry[], change: ForwardChange, by: Author | undefined): Promise<void> {
    const end = by && (await input.announce(change, by));
    try {
      await store.save(changed.map((entry) => entry.desired));
    } catch (error) {
      end?.(error);
      throw error;
    }
    end?.();
  }

  async function ensure(desired: DesiredForward, when: 'now' | 'later', by?: Author): Promise<ForwardReport> {
    if (!cluster?.connect) throw unsupported(input.noCluster);
    if (closed.signal.aborted) throw new RdError('ERR_NOT_READY', 'the service is stopping');
    if (!up && (when === 'now' || desired.hostPort === 0)) {
      throw new RdError('ERR_NOT_READY', 'the cluster is not running');
    }
    const name = forwardName(desired);
    const before = entries.get(name);
    const others = [...entries.values()].filter((entry) => entry !== before);
    const holder = others.find((entry) => desired.hostPort !== 0 && entry.desired.hostPort === desired.hostPort);
    if (holder) {
      const text = `127.0.0.1:${desired.hostPort} is forwarded to ${forwardName(holder.desired)}`;
      throw new RdError('ERR_PORT_IN_USE', text, { advice: 'Use another host port, or remove that forward.' });
    }
    if (others.length >= MAX_FORWARDS) {
      throw new RdError('ERR_FORBIDDEN', `there are ${MAX_FORWARDS} forwards already`, {
        advice: 'Remove some of them.',
      });
    }
    const same = before !== undefined && before.desired.hostPort === desired.hostPort;
    if (same && (before.listener || !up)) return reportOf(before, up);
    const next: Entry = { desired };
    if (up) {
      const listener = await open(next, desired.hostPort);
      next.listener = listener;
      next.desired = { ...desired, hostPort: listener.port };
    }
    try {
      const change = { name, ...(before ? { before: before.desired.hostPort } : {}), after: next.desired.hostPort };
      await save([...others, next], change, by);
    } catch (error) {
      await next.listener?.close();
      throw error;
    }
    entries.set(name, next);
    if (before) await closeListener(before);
    log('info', 'port forward set', { forward: name, hostPort: next.desired.hostPort });
    input.onChange?.();
    return reportOf(next, up);
  }

  return {
    ensure: (body, when, by) => queue.run(() => ensure(readForward(body), when, by)),
    remove: (body, by) =>
      queue.run(async () => {
        const name = nameOf(body);
        if (name === undefined) return false;
        const entry = entries.get(name);
        if (!entry) return false;
        const change = { name, before: entry.desired.hostPort };
        await save(
          [...entries.values()].filter((each) => each !== entry),
          change,
          by,
        );
        entries.delete(name);
        await closeListener(entry);
        log('info', 'port forward removed', { forward: name });
        input.onChange?.();
        return true;
      }),
    list: () => ({
      kind: 'PortForwards',
      formatVersion: 1,
      ...(cluster?.connect ? { supported: true } : { supported: false, reason: input.noCluster }),
      portForwards: [...entries.values()].map((entry) => reportOf(entry, up)),
    }),
    async close() {
      closed.abort();
      unsubscribe();
      await queue.run(reconcile);
    },
  };
}

function nameOf({ namespace, service, k8sPort }: Record<keyof ForwardKey, string | number>): string | undefined {
  try {
    return forwardName(readKey(namespace, service, k8sPort));
  } catch {
    return undefined;
  }
}

/** Whether connections can succeed: a cluster that does not respond yet would refuse every one. */
function isUp({ cluster }: LoopStatus): boolean {
  return cluster.state === 'running' && cluster.ready;
}

function reportOf({ desired, listener, failure, lastError }: Entry, up: boolean): ForwardReport {
  const connections = listener?.connections() ?? 0;
  const last = lastError === undefined ? {} : { lastError };
  if (listener) return { ...desired, state: 'listening', connections, ...last };
  if (up && failure !== undefined) return { ...desired, state: 'failed', reason: failure, connections };
  return { ...desired, state: 'waiting', reason: 'the cluster is not running', connections };
}

function unsupported(reason: string): RdError {
  return new RdError('ERR_SETTING_UNSUPPORTED', reason, {
    advice: 'Use a driver that has a cluster, or leave port forwards out.',
  });
}
