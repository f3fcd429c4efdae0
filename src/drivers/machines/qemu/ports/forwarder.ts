import { messageOf } from '../../../../errors.ts';
import type { Clock } from '../../../../os/clock.ts';
import { SerialQueue } from '../../../../os/serial-queue.ts';
import type { DriverContext, PublishedPort } from '../../../driver.ts';
import type { Connection } from '../guest.ts';
import type { PortConflict } from './conflict.ts';
import type { ForwardRecord } from './forward-record.ts';
import type { Forward, ForwardMethod, ForwardRoute, Port, PortKey, Target } from './forwards.ts';
import { changes, keyOf, MAX_FORWARDS, wantedPorts } from './forwards.ts';
import { portWatch } from './guest-watch.ts';
import type { Route } from './routes.ts';
import type { Listening } from './rules.ts';

/** Reserves a TCP port for another use into or out of the guest. Resolves once no forward uses it, with a function that releases the port. */
export type ClaimPort = (port: number) => Promise<() => void>;

/** Forwards a host port for each port that a guest program listens on or rules of the guest publish. An unavailable port is reported, never an error. */
export interface PortForwarder {
  /** Called when an observation finds a responsive guest: starts the watch, sets the method, and retries failed forwards. */
  watch(method: ForwardMethod): void;
  /** Moves the forwards to this method. @returns once they have moved. */
  switchTo(method: ForwardMethod): Promise<void>;
  claim: ClaimPort;
  published(): PublishedPort[];
  /** Stops the watch; forwards stay. */
  release(): Promise<void>;
  /** Called when the machine stops, and all forwards with it. */
  forget(): Promise<void>;
}

export interface PortForwarderParts {
  guest: Pick<Connection, 'stream' | 'onReconnect'>;
  routes: Readonly<Record<ForwardRoute, Route>>;
  record: ForwardRecord;
  portConflict: PortConflict;
  clock: Pick<Clock, 'now'>;
  log: DriverContext['log'];
}

/** Ports reserved by the guest itself: ssh and internal Kubernetes components. The API server is forwarded on request. */
const OWN_TCP_PORTS = [22, 6444, 10010, 10248, 10249, 10250, 10256, 10257, 10258, 10259];
/** Ports of DHCP, and of the networks of Kubernetes and Docker between nodes. */
const OWN_UDP_PORTS = [68, 546, 4789, 8472];
const OWN_PORTS: ReadonlySet<PortKey> = new Set([
  ...OWN_TCP_PORTS.map((port) => keyOf({ protocol: 'tcp', port })),
  ...OWN_UDP_PORTS.map((port) => keyOf({ protocol: 'udp', port })),
]);

export function portForwarder(parts: PortForwarderParts): PortForwarder {
  const { guest, routes, record, portConflict, clock, log } = parts;
  const claimed = new Set<PortKey>();
  const forwards = new Map<PortKey, Forward>();
  /** Sockets to forward, from the last report; undefined while the watch is down. */
  let listening: Listening[] | undefined;
  /** Sockets in the last report. */
  let reported: Listening[] = [];
  /** Ports in the last report of packet filter rules. */
  let published: Listening[] = [];
  let wanted: ReadonlyMap<PortKey, Target> = new Map();
  let method: ForwardMethod = { route: 'ssh', binding: 'loopback' };
  let isRecordRead = false;
  let isOverLimit = false;
  /** Counts connections: forwards of an earlier one may no longer exist. */
  let connection = 0;
  let end = new AbortController();
  const queue = new SerialQueue();
  let pending: Promise<void> | undefined;

  const watch = portWatch(
    guest,
    (line) => {
      if (line !== 'heartbeat' && 'published' in line) published = line.published;
      else if (line !== 'heartbeat') {
        // A UDP client that waits for a response looks like a server; only sockets in two reports count as servers.
        const before = new Set(reported.map(keyOf));
        listening = line.listening.filter((socket) => socket.protocol === 'tcp' || before.has(keyOf(socket)));
        reported = line.listening;
      }
      void reconcile();
    },
    log,
  );
  guest.onReconnect(async () => {
    connection += 1;
    listening = undefined;
    reported = [];
    published = [];
    for (const forward of forwards.values()) markUnproven(forward);
  });

  function markUnproven(forward: Forward): void {
    if (forward.state !== 'forwarded') return;
    const { addresses: _, ...target } = forward;
    forwards.set(keyOf(forward), { ...target, state: 'unproven' });
  }

  /** Serialized: concurrent changes of the same port would undo each other. */
  function serialize(work: () => Promise<void>): Promise<void> {
    return queue.run(work).catch((error: unknown) => {
      if (!end.signal.aborted) log('warn', 'the port forwards could not be updated', { message: messageOf(error) });
    });
  }

  /** Reconciles the forwards with the listening ports. Concurrent callers share a pending run. */
  function reconcile(): Promise<void> {
    pending ??= serialize(async () => {
      pending = undefined;
      await readRecord();
      if (listening === undefined) return;
      const isOwn = (at: Port) => OWN_PORTS.has(keyOf(at)) || claimed.has(keyOf(at));
      wanted = wantedPorts([...published, ...listening], isOwn, method);
      warnAboutTooMany(wanted.size);
      const { close, open } = changes(wanted, forwards, clock.now());
      for (const forward of close) await removeForward(forward);
      // Record the intent first: the next service must know what a killed one created.
      await writeRecord(open.map((forward) => ({ ...forward, state: 'unproven' })));
      for (const forward of open) await openForward(forward);
      await writeRecord([]);
    });
    return pending;
  }

  /** Warns once, and again after a recovery. */
  function warnAboutTooMany(count: number): void {
    if (count === MAX_FORWARDS && !isOverLimit)
      log('warn', 'the guest listens on too many ports; the rest are not forwarded', { count });
    isOverLimit = count === MAX_FORWARDS;
  }

  async function readRecord(): Promise<void> {
    if (isRecordRead) return;
    isRecordRead = true;
    const kept = await record.read().catch((error: unknown) => {
      log('warn', 'the forwards of an earlier service cannot be read and may remain', { message: messageOf(error) });
      return [];
    });
    for (const forward of kept) forwards.set(keyOf(forward), forward);
  }

  async function writeRecord(more: readonly Forward[]): Promise<void> {
    if (end.signal.aborted) return;
    const kept = new Map([...forwards].filter(([, { state }]) => state !== 'failed'));
    for (const forward of more) kept.set(keyOf(forward), forward);
    await record.write([...kept.values()]).catch((error: unknown) => {
      log('warn', 'the port forwards could not be recorded; they remain if the service is killed', {
        message: messageOf(error),
      });
    });
  }

  async function removeForward(forward: Forward): Promise<void> {
    const { protocol, port, state } = forward;
    if (end.signal.aborted) return;
    if (state !== 'failed') {
      // The connection may be gone, and the forward with it.
      await routes[forward.way].close(forward, end.signal).catch(() => undefined);
      log('debug', 'a port of the guest is no longer forwarded', { protocol, port });
    }
    forwards.delete(keyOf(forward));
  }

  async function openForward(at: Target): Promise<void> {
    if (end.signal.aborted) return;
    const { protocol, port, claimedBy } = at;
    const key = keyOf(at);
    const before = forwards.get(key);
    const began = connection;
    // A retry costs a process and a log line.
    if (before?.state === 'failed' && (await portConflict(at)) === before.reason) {
      forwards.set(key, { ...before, ...at, at: clock.now() });
      return;
    }
    try {
      const addresses = await routes[at.way].open(at, end.signal);
      forwards.set(key, began === connection ? { ...at, state: 'forwarded', addresses } : { ...at, state: 'unproven' });
      log('debug', 'a port of the guest is forwarded', { protocol, port });
    } catch (error) {
      if (end.signal.aborted) return;
      const reason = (await portConflict(at)) ?? messageOf(error);
      forwards.set(key, { ...at, state: 'failed', reason, at: clock.now() });
      const isNew = before?.state !== 'failed' || before.reason !== reason;
      if (isNew) log('warn', 'a port of the guest cannot be forwarded', { protocol, port, claimedBy, reason });
    }
  }

  async function stopWatch(): Promise<void> {
    end.abort();
    await watch.end();
    await queue.idle();
    listening = undefined;
    reported = [];
    published = [];
    end = new AbortController();
  }

  return {
    watch(next) {
      method = next;
      watch.begin();
      if (listening !== undefined) void reconcile();
    },
    switchTo(next) {
      method = next;
      return reconcile();
    },
    async claim(port) {
      const key = keyOf({ protocol: 'tcp', port });
      claimed.add(key);
      await serialize(async () => {
        await readRecord();
        const forward = forwards.get(key);
        if (!forward) return;
        await removeForward(forward);
        await writeRecord([]);
      });
      return () => void claimed.delete(key);
    },
    published: () =>
      [...forwards.values()]
        .sort((one, other) => one.port - other.port)
        .flatMap((forward): PublishedPort[] => {
          const { protocol, port, state } = forward;
          const claimedBy = wanted.get(keyOf(forward))?.claimedBy;
          const claim = claimedBy === undefined ? {} : { claimedBy };
          if (state === 'unproven') return [];
          if (state === 'failed') return [{ protocol, port, state, ...claim, reason: forward.reason }];
          return [{ protocol, port, state, ...claim, addresses: forward.addresses }];
        }),
    release: stopWatch,
    async forget() {
      await stopWatch();
      forwards.clear();
      isRecordRead = false;
      await record.remove();
    },
  };
}
