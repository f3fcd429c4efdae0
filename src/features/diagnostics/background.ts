import type { Clock } from '../../os/clock.ts';

/** Milliseconds: a shorter interval would only burden the server. */
const SHORTEST = 1_000;

export interface BackgroundOptions {
  clock: Clock;
  /** Interval in milliseconds; 0 disables it. */
  interval(): number;
  /** One run. Never rejects. */
  look(): Promise<void>;
}

/** Repeats, a whole interval after the end of the last run. */
export interface Background {
  /** Restarts the interval after a settings change. */
  restart(): void;
  close(): void;
}

/** Begins with a whole interval, because the first run belongs to the start of the service. */
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
