import type { Clock } from '../reconcile/clock.ts';

/** Milliseconds: a shorter interval would only be a burden to the other side. */
const SHORTEST = 1_000;

export interface BackgroundOptions {
  clock: Clock;
  /** Milliseconds between two looks; 0 is never. */
  interval(): number;
  /** One look. Never rejects. */
  look(): Promise<void>;
}

/** Looks again and again, a whole interval after the last look ended. */
export interface Background {
  /** Begins the interval anew: settings have changed. */
  restart(): void;
  close(): void;
}

/** Begins with a whole interval, because the first look belongs to the start of the service. */
export function createBackground({ clock, interval, look }: BackgroundOptions): Background {
  let round = new AbortController();

  async function loop({ signal }: AbortController): Promise<void> {
    while (!signal.aborted) {
      const pause = interval();
      if (pause === 0) return;
      await clock.sleep(Math.max(pause, SHORTEST), signal);
      if (!signal.aborted) await look();
    }
  }

  void loop(round);
  return {
    restart() {
      round.abort();
      round = new AbortController();
      void loop(round);
    },
    close: () => round.abort(),
  };
}
