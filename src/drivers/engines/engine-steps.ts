import type { EngineDriver, EngineSpec, EngineStatus } from '../driver.ts';
import type { EngineRecord } from './engine-record.ts';
import { differsInPatterns, sameSpec } from './engine-record.ts';
import type { PullGuard } from './pull-guard.ts';
import { refuseUnsupported } from './refusal.ts';

interface EngineStepsParts {
  record: EngineRecord;
  guard: PullGuard;
  observe(signal: AbortSignal): Promise<EngineStatus>;
  /** When nothing of the engine is there. */
  start(spec: EngineSpec, signal: AbortSignal): Promise<void>;
  stop(signal: AbortSignal): Promise<void>;
}

/** The steps of an engine that takes patterns of allowed images while it runs, and everything else by a start. */
export function engineSteps({ record, guard, observe, start, stop }: EngineStepsParts): EngineDriver['perform'] {
  async function begin(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    refuseUnsupported(spec);
    if ((await record.read()) !== undefined) {
      const found = await observe(signal);
      if (found.state === 'running' && sameSpec(found.spec, spec)) return;
      // Also where it is called stopped: a crash may have left half an engine.
      await stop(signal);
    }
    await start(spec, signal);
  }

  /** Recorded first, because every look serves what is recorded. */
  async function adjust(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    const started = await record.read();
    if (started === undefined || started === 'unreadable' || !differsInPatterns(started.spec, spec)) {
      return begin(spec, signal);
    }
    await record.write({ ...started, spec });
    if (spec.allowedImages.enabled) await guard.hold(spec.allowedImages.patterns, started.gateway);
  }

  return async (step, signal) => {
    switch (step.do) {
      case 'start':
        return begin(step.spec, signal);
      case 'adjust':
        return adjust(step.spec, signal);
      case 'stop':
        return stop(signal);
    }
  };
}
