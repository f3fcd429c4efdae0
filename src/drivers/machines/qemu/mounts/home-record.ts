import { isObject, type JsonValue } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../storage/atomic-file.ts';
import type { SharedHome } from './home.ts';
import { isMountType, type MountType } from './way.ts';

export interface HomeShown extends SharedHome {
  type: MountType;
  /** It has been mounted in the guest since the guest is there. */
  mounted: boolean;
}

/** What a machine was started with, or why it shows nothing, as a clause: its devices do not change, whatever the next service finds. */
export type HomeRecord = HomeShown | { missing: string };

/** Undefined when there is none that can be understood. */
export async function readHomeRecord(file: string): Promise<HomeRecord | undefined> {
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  try {
    return parsed(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export async function writeHomeRecord(file: string, record: HomeRecord): Promise<void> {
  await writeFileAtomic(file, `${JSON.stringify(record, undefined, 2)}\n`);
}

function parsed(value: JsonValue): HomeRecord | undefined {
  if (!isObject(value)) return undefined;
  const { type, path, real, hidden, mounted, missing } = value;
  if (typeof missing === 'string') return { missing };
  if (!isMountType(type) || typeof path !== 'string' || typeof real !== 'string' || !Array.isArray(hidden))
    return undefined;
  const places = hidden.filter((place) => typeof place === 'string');
  return { type, path, real, hidden: places, mounted: mounted === true };
}
