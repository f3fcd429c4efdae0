import { connect, type Socket } from 'node:net';
import { RdError } from '../../../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../json.ts';

/** An asynchronous QEMU event, such as `POWERDOWN` or `DEVICE_DELETED`. */
interface QmpEvent {
  name: string;
  data: JsonObject;
}

/** A connection to the QEMU monitor (QEMU Machine Protocol). QEMU serves one client at a time. */
export interface Qmp {
  /**
   * @throws RdError `ERR_DRIVER_FAILED` with QEMU's message when it refuses or times out; after a timeout the connection is unusable,
   * because the
   *   next response could belong to the earlier request. `ERR_CANCELLED` by the signal.
   */
  execute(command: string, args?: JsonObject, options?: QmpOptions): Promise<JsonValue>;
  /** The next event that `wanted` accepts, including events queued since the connection was opened. */
  event(wanted: (event: QmpEvent) => boolean, options?: QmpOptions): Promise<QmpEvent>;
  close(): void;
}

export interface QmpOptions {
  /** Default: 10,000. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

const LIMIT_MS = 10_000;
/** Queued events; the oldest are dropped beyond this limit. */
const MAX_EVENTS = 1_000;
/** A response with all devices of a machine has about ten thousand characters. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

interface Waiting {
  resolve(value: JsonValue): void;
  reject(error: Error): void;
}
interface Watching {
  wanted(event: QmpEvent): boolean;
  resolve(event: QmpEvent): void;
  reject(error: Error): void;
}

/**
 * Connects to the socket and negotiates capabilities.
 * @throws RdError `ERR_DRIVER_FAILED` when nothing listens or the peer is not QEMU.
 */
export async function openQmp(path: string, options: QmpOptions = {}): Promise<Qmp> {
  const socket = connect({ path });
  const calls = new Map<number, Waiting>();
  const events: QmpEvent[] = [];
  const watches = new Set<Watching>();
  let greeted: Waiting | undefined;
  let ended: RdError | undefined;
  let last = 0;

  const fail = (reason: string, cause?: unknown) => {
    ended ??= failed(`QEMU's monitor at ${path} ${reason}`, cause);
    socket.destroy();
    greeted?.reject(ended);
    for (const each of [...calls.values(), ...watches]) each.reject(ended);
    calls.clear();
    watches.clear();
  };
  onLines(
    socket,
    (line) => {
      const message = parsed(line);
      if (!message) return fail('says something that is not JSON');
      if (isObject(message.QMP)) return greeted?.resolve(message.QMP);
      if (typeof message.event === 'string') return take({ name: message.event, data: objectOf(message.data) });
      const call = typeof message.id === 'number' ? calls.get(message.id) : undefined;
      if (!call) return;
      calls.delete(Number(message.id));
      if (message.error === undefined) call.resolve(message.return ?? {});
      else call.reject(failed(`QEMU refused: ${String(objectOf(message.error).desc ?? 'no reason given')}`));
    },
    () => fail('says too much'),
  );
  socket.on('error', (cause) => fail(`cannot be reached: ${cause.message}`, cause));
  socket.on('close', () => fail('closed the connection'));

  function take(event: QmpEvent): void {
    for (const watch of watches) {
      if (!watch.wanted(event)) continue;
      watches.delete(watch);
      watch.resolve(event);
      return;
    }
    events.push(event);
    if (events.length > MAX_EVENTS) events.shift();
  }

  /** Runs `begin` with a limit and a signal; `undo` runs when either ends it early. */
  function within<T>(
    what: string,
    { timeoutMs = LIMIT_MS, signal }: QmpOptions,
    begin: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
    late: () => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (ended) return reject(ended);
      if (signal?.aborted) return reject(cancelled(what));
      const finish = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const stop = (error: RdError) => {
        finish();
        // First: other waiters only see that the connection is closed.
        reject(error);
        late();
      };
      const timer = setTimeout(
        () => stop(failed(`QEMU did not answer "${what}" within ${timeoutMs / 1000} s`)),
        timeoutMs,
      );
      const onAbort = () => stop(cancelled(what));
      signal?.addEventListener('abort', onAbort, { once: true });
      begin(
        (value) => {
          finish();
          resolve(value);
        },
        (error) => {
          finish();
          reject(error);
        },
      );
    });
  }

  const qmp: Qmp = {
    execute(command, args, callOptions = {}) {
      last += 1;
      const id = last;
      return within<JsonValue>(
        command,
        callOptions,
        (resolve, reject) => {
          calls.set(id, { resolve, reject });
          socket.write(`${JSON.stringify({ execute: command, ...(args ? { arguments: args } : {}), id })}\n`);
        },
        () => {
          calls.delete(id);
          fail(`did not answer "${command}" in time`);
        },
      );
    },
    event(wanted, callOptions = {}) {
      const index = events.findIndex(wanted);
      const [found] = index === -1 ? [] : events.splice(index, 1);
      if (found) return Promise.resolve(found);
      let watch: Watching | undefined;
      return within<QmpEvent>(
        'an event',
        callOptions,
        (resolve, reject) => {
          watch = { wanted, resolve, reject };
          watches.add(watch);
        },
        () => void (watch && watches.delete(watch)),
      );
    },
    close() {
      fail('was closed');
    },
  };
  try {
    await within<JsonValue>(
      'hello',
      options,
      (resolve, reject) => {
        greeted = { resolve, reject };
      },
      () => undefined,
    );
    await qmp.execute('qmp_capabilities', undefined, options);
  } catch (error) {
    qmp.close();
    throw error;
  }
  return qmp;
}

function onLines(socket: Socket, line: (text: string) => void, tooLong: () => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const each of lines) if (each.trim() !== '') line(each);
    if (rest.length > MAX_CHARACTERS) tooLong();
  });
}

function parsed(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function failed(message: string, cause?: unknown): RdError {
  return new RdError('ERR_DRIVER_FAILED', message, cause === undefined ? {} : { cause });
}

function cancelled(what: string): RdError {
  return new RdError('ERR_CANCELLED', `waiting for QEMU (${what}) was cancelled`);
}
