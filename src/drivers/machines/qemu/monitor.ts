import { isObject } from '../../../json.ts';
import { openQmp, type Qmp } from './qmp.ts';
import { shareObservation } from './shared-look.ts';

/** The monitor of a QEMU that may or may not run. QEMU serves one client at a time, so uses are serialized. */
export interface Monitor {
  /** Passes a connection to `work` and closes it afterwards. @throws RdError as `openQmp` and the work do. */
  use<T>(work: (qmp: Qmp) => Promise<T>, signal: AbortSignal): Promise<T>;
  /** QEMU's run state: `running`, `paused`…; `SILENT` without a response. Concurrent callers share one query. */
  status(signal: AbortSignal): Promise<string>;
}

/** Not a QEMU run state: QEMU did not respond. */
export const SILENT = 'not answering';
/** Run state after a failed guest write, usually because the disk is full. */
export const WRITE_FAILED = 'io-error';

/** Run states in which QEMU keeps the guest halted until `cont`, as clauses. */
export const HALTED: Readonly<Record<string, string>> = {
  [WRITE_FAILED]: 'the guest was halted when a disk could not be written; most likely the disk of this host is full',
  paused: 'the guest was halted by somebody',
};

/** @param path the monitor socket. */
export function qemuMonitor(path: string): Monitor {
  let last: Promise<unknown> = Promise.resolve();

  function use<T>(work: (qmp: Qmp) => Promise<T>, signal: AbortSignal): Promise<T> {
    const turn = last.then(async () => {
      const qmp = await openQmp(path, { signal });
      try {
        return await work(qmp);
      } finally {
        qmp.close();
      }
    });
    last = turn.catch(() => undefined);
    return turn;
  }

  async function ask(signal: AbortSignal): Promise<string> {
    try {
      const answer = await use((qmp) => qmp.execute('query-status', undefined, { signal }), signal);
      return isObject(answer) && typeof answer.status === 'string' ? answer.status : 'unknown';
    } catch (error) {
      if (signal.aborted) throw error;
      return SILENT;
    }
  }

  return { use, status: shareObservation(ask) };
}
