import { isObject } from '../../../json.ts';
import { openQmp, type Qmp } from './qmp.ts';
import { sharedLook } from './shared-look.ts';

/** The monitor of a QEMU that may be there or not. QEMU talks to one client at a time, so that uses wait for each other. */
export interface Monitor {
  /** Hands a connection to the work and closes it afterwards. @throws RdError as `openQmp` and the work do. */
  use<T>(work: (qmp: Qmp) => Promise<T>, signal: AbortSignal): Promise<T>;
  /** QEMU's word for the guest: `running`, `paused`…; `SILENT` when it says nothing. Looks at the same time share one. */
  status(signal: AbortSignal): Promise<string>;
}

/** No word of QEMU's: it said nothing. */
export const SILENT = 'not answering';
/** The status of a guest whose write could not be done, most often because it found no room. */
export const WRITE_FAILED = 'io-error';

/** States in which QEMU keeps the guest as it is until it is told to go on, as clauses. */
export const HALTED: Readonly<Record<string, string>> = {
  [WRITE_FAILED]: 'the guest was halted when a disk could not be written; most likely the disk of this host is full',
  paused: 'the guest was halted by somebody',
};

/** @param path socket of the monitor. */
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

  return { use, status: sharedLook(ask) };
}
