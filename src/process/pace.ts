/** Time as programs that wait see it; replaced in tests. */
export interface Pace {
  /** Milliseconds that only grow. */
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts; the caller looks at the signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of the machine. */
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
