import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { isObject, type JsonObject } from '../json.ts';
import type { PlanRequest, Target } from '../plan/change.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { readIfThere, writeFileAtomic } from '../storage/atomic-file.ts';
import type { Places } from '../storage/places.ts';

/** What an apply found before it wrote, so that there is a way back. */
interface Previous {
  formatVersion: 1;
  savedAt: string;
  target: Target;
  settings: JsonObject;
  power: 'started' | 'stopped';
}

/** Extensions are changed by installing them, so going back does not concern them. */
const EXTENSIONS = 'application.extensions.installed';

/** Keeps the state before an apply that is about to write (file mode 0600: settings may hold a proxy password). */
export async function keepPrevious(
  where: Places,
  before: Pick<Previous, 'target' | 'settings' | 'power'>,
  now: Date,
): Promise<void> {
  const previous: Previous = { formatVersion: 1, savedAt: now.toISOString(), ...before };
  await writeFileAtomic(fileOf(where), `${JSON.stringify(previous, null, 2)}\n`);
}

/** The request that brings the state before the last apply back. Throws `ERR_NOT_FOUND` when none was kept. */
export async function previousRequest(where: Places): Promise<PlanRequest> {
  const file = fileOf(where);
  const text = await readIfThere(file);
  if (text === undefined) {
    throw new RdError('ERR_NOT_FOUND', 'There is nothing to go back to: no apply has changed anything here.', {
      advice: 'Apply a profile with `rdctl apply -f FILE`.',
    });
  }
  const value = parse(text, file);
  const maps = FIELDS.filter((field) => field.type.startsWith('map<') && field.path !== EXTENSIONS);
  return { settings: withoutExtensions(value.settings), state: value.power, prune: maps.map((field) => field.path) };
}

function fileOf(where: Places): string {
  return join(where.state, 'before-apply.json');
}

function parse(text: string, file: string): Pick<Previous, 'settings' | 'power'> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (isObject(value) && value.formatVersion === 1 && isObject(value.settings)) {
    const { settings, power } = value;
    if (power === 'started' || power === 'stopped') return { settings, power };
  }
  throw new RdError('ERR_IO', `${file} does not hold the state before an apply.`, {
    advice: 'Remove the file, and apply the profile that you want back.',
  });
}

function withoutExtensions(settings: JsonObject): JsonObject {
  const copy = structuredClone(settings);
  if (isObject(copy.application) && isObject(copy.application.extensions)) delete copy.application.extensions.installed;
  return copy;
}
