import { RdError } from '../../errors.ts';
import type { EngineDriver, EngineSpec, EngineStatus } from '../driver.ts';
import { differsInPatterns, type EngineRecord, sameSpec } from './engine-record.ts';
import type { PullGuard } from './pull-guard.ts';

interface EngineStepsParts {
  record: EngineRecord;
  guard: PullGuard;
  observe(signal: AbortSignal): Promise<EngineStatus>;
  /** When no trace of the engine is found. */
  start(spec: EngineSpec, signal: AbortSignal): Promise<void>;
  stop(signal: AbortSignal): Promise<void>;
}

/** The steps of an engine that applies allowed-image patterns live and everything else by a restart. */
export function engineSteps({ record, guard, observe, start, stop }: EngineStepsParts): EngineDriver['perform'] {
  async function begin(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    refuseUnsupported(spec);
    if ((await record.read()) !== undefined) {
      const found = await observe(signal);
      if (found.state === 'running' && sameSpec(found.spec, spec)) return;
      // Also when the state is stopped: a crash may have left it partly running.
      await stop(signal);
    }
    await start(spec, signal);
  }

  /** Recorded first, because every observation serves what is recorded. */
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

/**
 * Fails closed for what no engine here supports. Plans already refuse these settings; a stored value from another driver must not look
 * enforced either.
 * @throws RdError `ERR_DRIVER_TERMINAL` naming the setting.
 */
function refuseUnsupported(spec: EngineSpec): void {
  const wanted: [boolean, string, string][] = [
    [
      spec.webAssembly,
      'experimental.containerEngine.webAssembly.enabled is true, and this driver has no WebAssembly shims',
      'rdctl set --experimental.container-engine.web-assembly.enabled=false',
    ],
    [
      spec.name === 'moby' && spec.storageDriver === 'snapshotter',
      'containerEngine.mobyStorageDriver is snapshotter, which this driver does not support',
      'rdctl set --container-engine.moby-storage-driver=auto',
    ],
  ];
  for (const [refused, message, command] of wanted) {
    if (refused) throw new RdError('ERR_DRIVER_TERMINAL', message, { advice: `Switch it off: ${command}` });
  }
}
