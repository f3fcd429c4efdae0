/** A clock for programs that wait; replaced in tests. */
export interface Pace {
  /** Monotonic milliseconds. */
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts; the caller checks the signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The system clock. */
export const realPace: Pace = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener('abort', done, { once: true });
    }),
};
