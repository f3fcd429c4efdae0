import { RdError } from '../../errors.ts';
import type { EngineStatus } from '../driver.ts';
import type { StartedEngine } from './engine-record.ts';
import type { PullGuard } from './pull-guard.ts';

/**
 * Serves again what an engine that was started before looks for. It must come before the first question to the engine: a dockerd
 * whose plugin is away lets every request wait. Returns what the engine is when that cannot be done.
 */
export async function adoptGuard(
  guard: PullGuard,
  { spec, gateway }: StartedEngine,
): Promise<EngineStatus | undefined> {
  if (!spec.allowedImages.enabled) return undefined;
  if (gateway === undefined) {
    return { state: 'unresponsive', message: 'the record of how it was started names no gateway to registries' };
  }
  try {
    await guard.hold(spec.allowedImages.patterns, gateway);
    return undefined;
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
    return { state: 'unresponsive', message: `its list of allowed images cannot be enforced: ${error.message}` };
  }
}
