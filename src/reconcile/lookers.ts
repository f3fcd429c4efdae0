/** Those who wait for a look at the backend that begins after they asked. */
export interface Lookers {
  /** True once such a look has succeeded; false when it failed, the signal aborted, or the loop has ended. */
  ask(signal: AbortSignal): Promise<boolean>;
  /** Somebody waits whom no look has been begun for. */
  waiting(): boolean;
  /** A look begins: the function tells everyone who has asked by now how it ended. */
  begin(): (ok: boolean) => void;
  /** There will be no more looks. */
  end(): void;
}

type Answer = (ok: boolean) => void;

/** @param wake is called when somebody asks. */
export function createLookers(wake: () => void): Lookers {
  let asking = new Set<Answer>();
  let ended = false;
  const tell = (asked: ReadonlySet<Answer>, ok: boolean) => {
    for (const answer of [...asked]) answer(ok);
  };
  return {
    ask: (signal) =>
      new Promise((resolve) => {
        if (ended || signal.aborted) return resolve(false);
        const answer: Answer = (ok) => {
          asking.delete(answer);
          signal.removeEventListener('abort', giveUp);
          resolve(ok);
        };
        const giveUp = () => answer(false);
        signal.addEventListener('abort', giveUp, { once: true });
        asking.add(answer);
        wake();
      }),
    waiting: () => asking.size > 0,
    begin() {
      const asked = asking;
      asking = new Set();
      return (ok) => tell(asked, ok);
    },
    end() {
      ended = true;
      tell(asking, false);
    },
  };
}
