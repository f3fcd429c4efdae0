import { join } from 'node:path';
import { isObject, type JsonValue } from '../json.ts';
import { readIfThere } from '../os/atomic-file.ts';
import { type ForwardsReport, isWantedForwards } from '../plan/port-forwards.ts';
import type { Places } from '../state/places.ts';

/** The forwards of this home's next service. A file that the service could not use counts as empty. */
export async function storedForwards({ state }: Places): Promise<ForwardsReport> {
  const text = await readIfThere(join(state, 'port-forwards.json')).catch(() => undefined);
  const reason = 'no service runs';
  return {
    kind: 'PortForwards',
    formatVersion: 1,
    supported: true,
    portForwards: entriesIn(text).map((entry) => ({ ...entry, state: 'waiting', reason, connections: 0 })),
  };
}

function entriesIn(text: string | undefined) {
  if (text === undefined) return [];
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  const wanted = { entries: isObject(value) ? (value.portForwards ?? null) : null, exclusive: false };
  if (!isWantedForwards(wanted)) return [];
  return wanted.entries.flatMap((entry) => (entry.hostPort === null ? [] : [{ ...entry, hostPort: entry.hostPort }]));
}
