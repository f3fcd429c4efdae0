/** Those who wait for a look at the backend that begins after they asked. */
export interface Lookers {
  /** True once such a look has succeeded; false when it failed, the signal aborted, or the loop has ended. */
  ask(signal: AbortSignal): Promise<boolean>;
  /** Somebody waits whom no look has been begun for. */
  waiting(): boolean;
  /** A look begins, for everyone who has asked by now. */
  begin(): Turn;
  /** There will be no more looks. */
  end(): void;
}

/** One look. */
interface Turn {
  /** Tells them how it ended. */
  end(ok: boolean): void;
  /** It was ended early: they wait for the next. */
  again(): void;
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
      return {
        end: (ok) => tell(asked, ok),
        again() {
          if (ended) tell(asked, false);
          else for (const answer of asked) asking.add(answer);
        },
      };
    },
    end() {
      ended = true;
      tell(asking, false);
    },
  };
}
