/** What was seen of a machine at one moment. */
interface UseSample {
  /** Milliseconds of a clock that only grows. */
  at: number;
  /** Processor time that QEMU has used since it started, in milliseconds of a usual computer. */
  cpuMs: number;
  /** Someone has a connection to it. */
  connected: boolean;
}

/** Time in which the use of the processor counts. */
const WINDOW_MS = 60_000;
/** A machine that uses more of one core is working. An idle guest without KVM uses half of it. */
const BUSY_SHARE = 0.1;

/** Measures how long nobody has used a machine. */
export interface Idleness {
  /** @returns the milliseconds without use, up to `sample.at`. @param limitMs how many make it idle. */
  add(sample: UseSample, limitMs: number): number;
  /** Something used it at this time. */
  used(at: number): void;
}

/** Pure, apart from what it remembers: in use is a machine with a connection, and one that works on its own. */
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
      // The first one is the last that is at least as old as the window.
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
