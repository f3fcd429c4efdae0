import { isObject, type JsonObject } from '../json.ts';
import type { Target } from '../plan/change.ts';

/** True for the same product, home and driver. */
export function isSameTarget(one: Target, other: Target): boolean {
  return one.product === other.product && one.home === other.home && one.driver === other.driver;
}

/** `rdctl at /home/x/.local/share/rdctl with driver host` */
export function targetName({ product, home, driver, settingsVersion }: Target): string {
  if (settingsVersion !== undefined)
    return `${product} (settings version ${settingsVersion}) at ${home ?? 'a place unknown'}`;
  return `${product} ${home === undefined ? '' : `at ${home} `}with driver ${driver}`;
}

/** Whether a value read from a file is a target. */
export function isTarget(value: unknown): value is JsonObject & Target {
  if (!isObject(value)) return false;
  const { product, driver, simulated, home } = value;
  const texts =
    typeof product === 'string' && typeof driver === 'string' && (home === undefined || typeof home === 'string');
  return texts && typeof simulated === 'boolean';
}
