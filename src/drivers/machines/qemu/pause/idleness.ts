/** The observed use of a machine at one moment. */
interface UseSample {
  /** Milliseconds of a clock that only increases. */
  at: number;
  /** Processor time that QEMU has used since it started, in milliseconds of a usual computer. */
  cpuMs: number;
  /** A client has a connection to the machine. */
  connected: boolean;
}

/** Milliseconds in which the use of the processor counts. */
const WINDOW_MS = 60_000;
/** Share of one core above which a machine is working. An idle guest without KVM uses half of it. */
const BUSY_SHARE = 0.1;

/** Measures how long nobody has used a machine. */
export interface Idleness {
  /**
   * Adds a sample.
   * @returns the milliseconds without use, up to `sample.at`.
   * @param limitMs milliseconds without use that make the machine idle.
   */
  add(sample: UseSample, limitMs: number): number;
  /** Records a use of the machine at this time. */
  used(at: number): void;
}

/** Creates a measurement. A machine is in use if it has a connection, or works on its own. Pure, apart from its memory. */
export function idleness(): Idleness {
  let lastUse: number | undefined;
  let samples: UseSample[] = [];

  return {
    add(sample, limitMs) {
      const windowMs = Math.min(WINDOW_MS, limitMs);
      lastUse ??= sample.at;
      // A new QEMU starts at zero.
      if (sample.cpuMs < (samples.at(-1)?.cpuMs ?? 0)) samples = [];
      samples.push(sample);
      // The first sample is the last one that is at least as old as the window.
      while (samples[1] !== undefined && sample.at - samples[1].at >= windowMs) samples.shift();
      const [first = sample] = samples;
      const isBusy = sample.cpuMs - first.cpuMs > BUSY_SHARE * (sample.at - first.at);
      if (sample.connected || isBusy) lastUse = sample.at;
      return sample.at - lastUse;
    },
    used(at) {
      lastUse = Math.max(lastUse ?? at, at);
    },
  };
}
