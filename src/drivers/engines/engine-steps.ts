import type { EngineDriver, EngineSpec } from '../driver.ts';
import type { EngineRecord } from './engine-record.ts';
import { differsInPatterns } from './engine-record.ts';
import type { PullGuard } from './pull-guard.ts';

interface EngineStepsParts {
  record: EngineRecord;
  guard: PullGuard;
  start(spec: EngineSpec, signal: AbortSignal): Promise<void>;
  stop(signal: AbortSignal): Promise<void>;
}

/** The steps of an engine that takes patterns of allowed images while it runs, and everything else by a start. */
export function engineSteps({ record, guard, start, stop }: EngineStepsParts): EngineDriver['perform'] {
  /** Recorded first, because every look serves what is recorded. */
  async function adjust(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    const started = await record.read();
    if (started === undefined || started === 'unreadable' || !differsInPatterns(started.spec, spec)) {
      return start(spec, signal);
    }
    await record.write({ ...started, spec });
    if (spec.allowedImages.enabled) await guard.hold(spec.allowedImages.patterns, started.gateway);
  }

  return async (step, signal) => {
    switch (step.do) {
      case 'start':
        return start(step.spec, signal);
      case 'adjust':
        return adjust(step.spec, signal);
      case 'stop':
        return stop(signal);
    }
  };
}
