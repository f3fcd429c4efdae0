import { messageOf, RdError } from '../../errors.ts';
import type { LogFile } from '../../os/log-file.ts';
import type { Controllers, Desired, LoopStatus } from '../../reconcile/contract.ts';
import { changed, troubleOf } from './backend-wait.ts';
import { type KeptState, same } from './kept-state.ts';
import type { Maintenance } from './maintenance.ts';
import { quoted } from './name.ts';

/** Sees whether what was restored runs, and brings back what it replaced when it does not. */
export interface Proof {
  /**
   * Waits until it runs; at once where the backend is to be off, and then the proof is left to its next start.
   * @throws RdError `ERR_SNAPSHOT` when it does not come up, `ERR_CANCELLED` by the signal; what was before is then back.
   */
  demand(action: string, signal: AbortSignal): Promise<void>;
  /** Looks on, until what is unproven has run or was brought back. Does nothing when nothing is unproven. */
  watch(): void;
  /** Ends the watch. */
  close(): Promise<void>;
}

export interface ProofInput {
  keptState: Pick<KeptState, 'unproven' | 'confirm' | 'revert'>;
  maintenance: Pick<Maintenance, 'run' | 'heldBy' | 'idle'>;
  controllers: Pick<Controllers, 'status' | 'onChange'>;
  desired(): Desired;
  /** For people who look at the status later. */
  notice(text: string): void;
  log: LogFile['write'];
}

type Verdict = 'runs' | 'off' | 'fails' | 'open';

export function createProof(input: ProofInput): Proof {
  const { keptState, maintenance, controllers, log } = input;
  const closing = new AbortController();
  let watching: Promise<void> | undefined;
  /** Somebody waits for the outcome, and acts on it. */
  let demanded = false;

  function verdict(status: LoopStatus): Verdict {
    const { power, generation } = input.desired();
    if (maintenance.heldBy() !== undefined || status.generation !== generation) return 'open';
    if (power === 'stopped' || maintenance.idle) return 'off';
    if (status.backendState === 'ERROR') return 'fails';
    return status.converged && status.observedGeneration === generation ? 'runs' : 'open';
  }

  /** What is still unproven after a failure of this is tried again by the next service. */
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
      // Later settings may be what does not run: then only a person can tell which state is the right one.
      const mayRevert = () => settings !== undefined && same(input.desired().settings, settings);
      const isDecided = (status: LoopStatus) => {
        if (demanded) return false;
        if (keptState.unproven() !== journal) return true;
        const now = verdict(status);
        return now === 'runs' || (now === 'fails' && mayRevert());
      };
      await changed(controllers, isDecided, closing.signal);
      if (keptState.unproven() !== journal) continue;
      const status = controllers.status();
      if (verdict(status) === 'runs') await confirm();
      else await giveUp(journal.snapshot ?? '', status);
    }
  }

  function begin(): void {
    watching ??= watch()
      .catch((error: unknown) => {
        if (!closing.signal.aborted) log('error', 'what was restored cannot be watched', { error });
      })
      .finally(() => {
        watching = undefined;
      });
  }

  async function giveUp(snapshot: string, status: LoopStatus): Promise<void> {
    const text = `The restored snapshot ${quoted(snapshot)} did not come up (${troubleOf(status)}), and what was there before is back.`;
    await revert(`Restoring snapshot ${quoted(snapshot)}`);
    log('error', text);
    input.notice(text);
  }

  async function decide(action: string, end: AbortSignal): Promise<void> {
    try {
      await changed(controllers, (status) => verdict(status) !== 'open', end);
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
        return begin();
      default: {
        const why = troubleOf(status);
        await revert(action);
        throw new RdError(
          'ERR_SNAPSHOT',
          `what was restored did not come up, and what was there before is back: ${why}`,
        );
      }
    }
  }

  return {
    async demand(action, signal) {
      const end = AbortSignal.any([signal, closing.signal]);
      demanded = true;
      try {
        await decide(action, end);
      } finally {
        demanded = false;
      }
    },
    watch: begin,
    async close() {
      closing.abort();
      await watching;
    },
  };
}
