import { connect, type Socket } from 'node:net';
import { RdError } from '../../../errors.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../../../json.ts';
import { SerialQueue } from '../../../os/serial-queue.ts';
import { shareObservation } from './share-observation.ts';

/** A connection to the QEMU monitor (QEMU Machine Protocol). QEMU serves one client at a time. */
export interface Qmp {
  /**
   * Executes a QMP command.
   * @throws RdError `ERR_DRIVER_FAILED` with QEMU's message when it refuses or times out; after a timeout the connection is closed, because the next
   * response could belong to the earlier request. `ERR_CANCELLED` by the signal.
   */
  execute(command: string, args?: JsonObject, options?: QmpOptions): Promise<JsonValue>;
  close(): void;
}

export interface QmpOptions {
  /** Default: 10,000. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

const LIMIT_MS = 10_000;
/** A response with all devices of a machine has about ten thousand characters. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

interface PendingCall {
  resolve(value: JsonValue): void;
  reject(error: Error): void;
}

/**
 * Connects to the socket and negotiates capabilities.
 * @throws RdError `ERR_DRIVER_FAILED` when nothing listens or the peer is not QEMU.
 */
export async function openQmp(path: string, options: QmpOptions = {}): Promise<Qmp> {
  const socket = connect({ path });
  const calls = new Map<number, PendingCall>();
  let ended: RdError | undefined;
  let last = 0;

  const fail = (reason: string, cause?: unknown) => {
    ended ??= monitorError(`QEMU's monitor at ${path} ${reason}`, cause);
    socket.destroy();
    for (const call of [...calls.values()]) call.reject(ended);
  };
  onLines(
    socket,
    (line) => {
      const message = parseJson(line);
      if (!isObject(message)) return fail('sent something that is not JSON');
      // Events have no number.
      const call = calls.get(isObject(message.QMP) ? 0 : Number(message.id));
      if (!call) return;
      if (isObject(message.QMP)) return call.resolve(message.QMP);
      if (message.error === undefined) call.resolve(message.return ?? {});
      else call.reject(monitorError(`QEMU refused: ${String(objectOf(message.error).desc ?? 'no reason given')}`));
    },
    () => fail('sent too large a response'),
  );
  socket.on('error', (cause) => fail(`cannot be reached: ${cause.message}`, cause));
  socket.on('close', () => fail('closed the connection'));

  /** Waits for the response to one request; the greeting answers request 0. Closes the connection when the response is late. */
  function response(id: number, what: string, { timeoutMs = LIMIT_MS, signal }: QmpOptions, send?: () => void) {
    return new Promise<JsonValue>((resolve, reject) => {
      if (ended) return reject(ended);
      if (signal?.aborted) return reject(canceledError(what));
      const finish = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        calls.delete(id);
      };
      const giveUp = (error: RdError) => {
        finish();
        // Reject this call first: the others only see that the connection is closed.
        reject(error);
        fail(`did not answer "${what}" in time`);
      };
      const late = () => giveUp(monitorError(`QEMU did not answer "${what}" within ${timeoutMs / 1000} s`));
      const timer = setTimeout(late, timeoutMs);
      const onAbort = () => giveUp(canceledError(what));
      signal?.addEventListener('abort', onAbort, { once: true });
      calls.set(id, {
        resolve(value) {
          finish();
          resolve(value);
        },
        reject(error) {
          finish();
          reject(error);
        },
      });
      send?.();
    });
  }

  const qmp: Qmp = {
    execute(command, args, callOptions = {}) {
      last += 1;
      const id = last;
      return response(id, command, callOptions, () =>
        socket.write(`${JSON.stringify({ execute: command, ...(args ? { arguments: args } : {}), id })}\n`),
      );
    },
    close: () => fail('was closed'),
  };
  try {
    await response(0, 'hello', options);
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
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) if (text.trim() !== '') line(text);
    if (rest.length > MAX_CHARACTERS) tooLong();
  });
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function monitorError(message: string, cause?: unknown): RdError {
  return new RdError('ERR_DRIVER_FAILED', message, cause === undefined ? {} : { cause });
}

function canceledError(what: string): RdError {
  return new RdError('ERR_CANCELLED', `waiting for QEMU (${what}) was canceled`);
}

/** The monitor of a QEMU that may or may not run. QEMU serves one client at a time, so uses are serialized. */
export interface Monitor {
  /**
   * Passes a connection to `work` and closes it afterwards.
   * @throws RdError with the errors of `openQmp` and of the work.
   */
  use<T>(work: (qmp: Qmp) => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Returns QEMU's run state: `running`, `paused`…; `SILENT` without a response. Concurrent callers share one query. */
  status(signal: AbortSignal): Promise<string>;
}

/** Not a QEMU run state: QEMU did not respond. */
export const SILENT = 'not answering';
/** Run state after a failed guest write, usually because the disk is full. */
export const WRITE_FAILED = 'io-error';
/** Run state after `stop`. */
export const PAUSED = 'paused';

/** Run states in which QEMU keeps the guest halted until `cont`, as clauses. */
export const HALTED: Readonly<Record<string, string>> = {
  [WRITE_FAILED]: 'the guest was halted by a failed disk write; most likely the disk of this host is full',
  [PAUSED]: 'the guest was paused from outside',
};

/**
 * Creates the monitor.
 * @param path the monitor socket.
 */
export function qemuMonitor(path: string): Monitor {
  const uses = new SerialQueue();

  function use<T>(work: (qmp: Qmp) => Promise<T>, signal: AbortSignal): Promise<T> {
    return uses.run(async () => {
      const qmp = await openQmp(path, { signal });
      try {
        return await work(qmp);
      } finally {
        qmp.close();
      }
    });
  }

  async function queryStatus(signal: AbortSignal): Promise<string> {
    try {
      const answer = await use((qmp) => qmp.execute('query-status', undefined, { signal }), signal);
      return isObject(answer) && typeof answer.status === 'string' ? answer.status : 'unknown';
    } catch (error) {
      if (signal.aborted) throw error;
      return SILENT;
    }
  }

  return { use, status: shareObservation(queryStatus) };
}
