import { RdError } from '../../errors.ts';
import type { EngineStatus } from '../driver.ts';
import type { StartedEngine } from './engine-record.ts';
import type { PullGuard } from './pull-guard.ts';

/**
 * Resumes serving what a previously started engine connects to. Must precede the first query to the engine: a dockerd without its plugin
 * blocks every request. Returns the engine's state when that fails.
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
