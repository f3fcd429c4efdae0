import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';

/** Returns the labels in the configuration of an image. */
export function imageLabels(config: unknown): Record<string, string> {
  const labels = isObject(config) ? config.Labels : undefined;
  if (!isObject(labels)) return {};
  return Object.fromEntries(
    Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** Returns the error for a failed pull, by the engine's message. */
export function pullFailure(engine: string, reference: string, why: string, cause?: unknown): RdError {
  const code = /manifest unknown|not found/i.test(why)
    ? 'ERR_NOT_FOUND'
    : /denied|forbidden|unauthorized/i.test(why)
      ? 'ERR_FORBIDDEN'
      : 'ERR_DRIVER_FAILED';
  return new RdError(code, `${engine} could not pull ${reference}: ${why}`, { cause });
}
