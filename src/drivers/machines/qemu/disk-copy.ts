import { RdError } from '../../../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../json.ts';
import type { Clock } from '../../../os/clock.ts';
import { DATA_NODE } from './arguments.ts';
import type { ConfinedRun } from './confine/access.ts';
import type { Monitor, Qmp } from './monitor.ts';

/** QEMU's names for the copy and its job. There is only one at a time. */
const JOB = 'rdctl-copy';
const NODE = 'rdctl-copy0';
/** Leaves the monitor to other users between polls. */
const POLL_MS = 500;
/** A QEMU that is busy writing may not respond for a while. */
const SILENCE_MS = 60_000;

/** A point-in-time copy of the data disk, made by QEMU while the guest runs. */
export interface DiskCopy {
  /** Creates the empty target and opens it in QEMU. */
  prepare(target: string, signal: AbortSignal): Promise<void>;
  /** Starts the copy at this point in time: later guest writes are not in it. */
  begin(signal: AbortSignal): Promise<void>;
  /**
   * Waits until the copy is complete and QEMU has closed it.
   * @throws RdError `ERR_DRIVER_FAILED` with QEMU's message, such as a full disk; `ERR_CANCELLED`.
   */
  finish(signal: AbortSignal, progress: (share: number) => void): Promise<void>;
  /** Cancels a running copy, even one of another process. Idempotent. */
  drop(signal: AbortSignal): Promise<void>;
}

export interface DiskCopyParts {
  monitor: Pick<Monitor, 'use'>;
  run: ConfinedRun;
  clock: Clock;
  isAlive(): Promise<boolean>;
}

interface Job {
  status: string;
  done: number;
  total: number;
  error?: string;
}

export function diskCopy({ monitor, run, clock, isAlive }: DiskCopyParts): DiskCopy {
  const execute = (command: string, args: JsonObject | undefined, signal: AbortSignal) =>
    monitor.use((qmp) => qmp.execute(command, args, { signal }), signal);

  /** Returns the job. Tolerates an unresponsive QEMU for a while, unless it has exited. */
  async function job(since: number, signal: AbortSignal): Promise<Job | 'silent' | undefined> {
    try {
      return copyJob(await execute('query-jobs', undefined, signal));
    } catch (error) {
      if (signal.aborted) throw error;
      if (!(await isAlive())) {
        throw new RdError('ERR_DRIVER_FAILED', 'QEMU exited while copying the data disk', { cause: error });
      }
      if (clock.now() - since > SILENCE_MS) throw error;
      return 'silent';
    }
  }

  return {
    async prepare(target, signal) {
      const bytes = sizeOf(await execute('query-named-block-nodes', { flat: true }, signal));
      await run(['qemu-img', 'create', '-q', '-f', 'qcow2', target, String(bytes)], {
        access: { writes: [target] },
        signal,
      });
      // Zeros take no space in the copy, as in the original.
      await execute(
        'blockdev-add',
        {
          driver: 'qcow2',
          'node-name': NODE,
          discard: 'unmap',
          'detect-zeroes': 'unmap',
          file: { driver: 'file', filename: target },
        },
        signal,
      );
    },
    async begin(signal) {
      // `top`: skips unwritten ranges. `report`: a full disk ends the copy without halting the guest.
      const policy = { sync: 'top', 'on-target-error': 'report', 'on-source-error': 'report', 'auto-dismiss': false };
      await execute('blockdev-backup', { 'job-id': JOB, device: DATA_NODE, target: NODE, ...policy }, signal);
    },
    async finish(signal, progress) {
      let lastResponse = clock.now();
      for (;;) {
        const now = await job(lastResponse, signal);
        if (now === undefined) throw new RdError('ERR_DRIVER_FAILED', 'QEMU no longer has the copy job');
        if (now !== 'silent') {
          lastResponse = clock.now();
          if (now.status === 'concluded') {
            if (now.error !== undefined) throw copyFailed(now.error);
            progress(1);
            break;
          }
          if (now.total > 0) progress(now.done / now.total);
        }
        await clock.sleep(POLL_MS, signal);
        if (signal.aborted) throw new RdError('ERR_CANCELLED', 'copying the data disk was canceled');
      }
      await monitor.use((qmp) => releaseCopy(qmp, signal), signal);
    },
    async drop(signal) {
      const since = clock.now();
      for (let isCancelSent = false; ; ) {
        const now = await job(since, signal);
        if (now === undefined || (now !== 'silent' && now.status === 'concluded')) break;
        // A job that has just finished rejects the cancellation; the next poll sees its state.
        if (!isCancelSent) await execute('job-cancel', { id: JOB }, signal).catch(() => undefined);
        isCancelSent = now !== 'silent';
        if (clock.now() - since > SILENCE_MS) {
          throw new RdError('ERR_DRIVER_FAILED', 'QEMU did not cancel a copy of the data disk');
        }
        await clock.sleep(POLL_MS / 5, signal);
      }
      await monitor.use((qmp) => releaseCopy(qmp, signal), signal);
    },
  };
}

/** Removes a finished copy from QEMU and closes its file. */
async function releaseCopy(qmp: Qmp, signal: AbortSignal): Promise<void> {
  if (copyJob(await qmp.execute('query-jobs', undefined, { signal }))) {
    await qmp.execute('job-dismiss', { id: JOB }, { signal });
  }
  const nodes = await qmp.execute('query-named-block-nodes', { flat: true }, { signal });
  if (nodeOf(nodes, NODE)) await qmp.execute('blockdev-del', { 'node-name': NODE }, { signal });
}

function copyJob(answer: JsonValue): Job | undefined {
  const found = listOf(answer).find(({ id }) => id === JOB);
  if (!found) return undefined;
  return {
    status: String(found.status),
    done: Number(found['current-progress'] ?? 0),
    total: Number(found['total-progress'] ?? 0),
    ...(typeof found.error === 'string' ? { error: found.error } : {}),
  };
}

function nodeOf(answer: JsonValue, name: string): JsonObject | undefined {
  return listOf(answer).find((node) => node['node-name'] === name);
}

/** Returns the bytes of the data disk as the guest sees it now. */
function sizeOf(answer: JsonValue): number {
  const image = nodeOf(answer, DATA_NODE)?.image;
  const size = isObject(image) ? image['virtual-size'] : undefined;
  if (typeof size === 'number') return size;
  throw new RdError('ERR_DRIVER_FAILED', 'QEMU did not report the size of the data disk');
}

function listOf(answer: JsonValue): JsonObject[] {
  return Array.isArray(answer) ? answer.filter(isObject) : [];
}

function copyFailed(why: string): RdError {
  const advice = why.includes('No space left') ? { advice: 'Free up space on that disk and try again.' } : {};
  return new RdError('ERR_DRIVER_FAILED', `QEMU could not copy the data disk: ${why}`, advice);
}
