import { messageOf, RdError } from '../../errors.ts';
import type { LogFile } from '../../os/log-file.ts';
import { failureOf, statusMatches } from '../../reconcile/backend-wait.ts';
import type { Controllers, Desired, LoopStatus } from '../../reconcile/contract.ts';
import type { Maintenance } from '../../reconcile/maintenance.ts';
import { type KeptState, same } from './kept-state.ts';
import { quoted } from './name.ts';

/** Checks whether restored state runs, and reverts it if it does not. */
export interface Proof {
  /**
   * Waits until the restored state runs. Returns at once when the backend is desired off; its next start is the proof then.
   * @throws RdError `ERR_SNAPSHOT` when it does not come up, `ERR_CANCELLED` by the signal; the previous state is then back.
   */
  waitUntilProven(action: string, signal: AbortSignal): Promise<void>;
  /** Watches in the background until unproven state has run or was reverted. */
  watch(): void;
  /** Stops watching. */
  close(): Promise<void>;
}

export interface ProofInput {
  keptState: Pick<KeptState, 'unproven' | 'confirm' | 'revert'>;
  maintenance: Pick<Maintenance, 'run' | 'heldBy' | 'idle'>;
  controllers: Pick<Controllers, 'status' | 'onChange'>;
  desired(): Desired;
  /** Shows a notice to people who look at the status later. */
  notice(text: string): void;
  log: LogFile['write'];
}

type Verdict = 'runs' | 'off' | 'fails' | 'open';

export function createProof(input: ProofInput): Proof {
  const { keptState, maintenance, controllers, log } = input;
  const closing = new AbortController();
  let watching: Promise<void> | undefined;
  /** True while a caller waits for the outcome and acts on it. */
  let isAwaited = false;

  function verdict(status: LoopStatus): Verdict {
    const { power, generation } = input.desired();
    if (maintenance.heldBy() !== undefined || status.generation !== generation) return 'open';
    if (power === 'stopped' || maintenance.idle) return 'off';
    if (status.backendState === 'ERROR') return 'fails';
    return status.converged && status.observedGeneration === generation ? 'runs' : 'open';
  }

  /** Reverts the state. After a failure the next service tries again. */
  async function revert(action: string): Promise<void> {
    try {
      await maintenance.run(`${action}: going back`, closing.signal, (work) => keptState.revert(work));
    } catch (cause) {
      const why = messageOf(cause);
      const text = `what was there before is kept and could not be put back yet: ${why}`;
      input.notice(`${action}: ${text}`);
      throw new RdError('ERR_SNAPSHOT', text, { cause, advice: 'Fix this and restart the service.' });
    }
  }

  async function confirm(): Promise<void> {
    await keptState
      .confirm()
      .catch((error: unknown) => log('warn', 'what was restored runs; this could not be noted', { error }));
  }

  async function watch(): Promise<void> {
    for (;;) {
      const journal = keptState.unproven();
      if (!journal || closing.signal.aborted) return;
      const settings = journal.settings?.after;
      // Later settings may be the cause of a failure: then only a person can decide which state is the right one.
      const mayRevert = () => settings !== undefined && same(input.desired().settings, settings);
      const isDecided = (status: LoopStatus) => {
        if (isAwaited) return false;
        if (keptState.unproven() !== journal) return true;
        const now = verdict(status);
        return now === 'runs' || (now === 'fails' && mayRevert());
      };
      await statusMatches(controllers, isDecided, closing.signal);
      if (keptState.unproven() !== journal) continue;
      const status = controllers.status();
      if (verdict(status) === 'runs') await confirm();
      else await giveUp(journal.snapshot ?? '', status);
    }
  }

  function startWatching(): void {
    watching ??= watch()
      .catch((error: unknown) => {
        if (!closing.signal.aborted) log('error', 'what was restored cannot be watched', { error });
      })
      .finally(() => {
        watching = undefined;
      });
  }

  async function giveUp(snapshot: string, status: LoopStatus): Promise<void> {
    const text = `The restored snapshot ${quoted(snapshot)} did not come up (${failureOf(status)}), and what was there before is back.`;
    await revert(`Restoring snapshot ${quoted(snapshot)}`);
    log('error', text);
    input.notice(text);
  }

  async function decide(action: string, end: AbortSignal): Promise<void> {
    try {
      await statusMatches(controllers, (status) => verdict(status) !== 'open', end);
    } catch (error) {
      // A service that stops leaves the proof to the next one.
      if (!closing.signal.aborted) await revert(action);
      throw error;
    }
    const status = controllers.status();
    switch (verdict(status)) {
      case 'runs':
        return confirm();
      case 'off':
        return startWatching();
      default: {
        const why = failureOf(status);
        await revert(action);
        throw new RdError(
          'ERR_SNAPSHOT',
          `what was restored did not come up, and what was there before is back: ${why}`,
        );
      }
    }
  }

  return {
    async waitUntilProven(action, signal) {
      const end = AbortSignal.any([signal, closing.signal]);
      isAwaited = true;
      try {
        await decide(action, end);
      } finally {
        isAwaited = false;
      }
    },
    watch: startWatching,
    async close() {
      closing.abort();
      await watching;
    },
  };
}
