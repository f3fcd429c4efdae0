import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import type { Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import type { Finding } from '../../src/settings/finding.ts';
import { leafAt, leaves, setLeaf } from '../../src/settings/leaf-paths.ts';
import { copyOfObject } from '../../src/settings/own.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import type { ImportedPart, Part } from '../formats/format.ts';
import type { Fidelity } from './fidelity.ts';
import { type Interpreted, interpretPart } from './imported-part.ts';
import { API_VERSION, KIND } from './shape.ts';
import { secretVariable } from './write.ts';

/** Both deployment profiles as one: what a profile document holds as `settings` and `locked`. */
export interface JoinedParts {
  /** At the newest version, canonical: the defaults with the locked ones over them. Secrets are in it. */
  settings: JsonObject;
  /** Settings that the locked profile holds, in schema order. */
  locked: SettingPath[];
  fidelity: Fidelity[];
  /** What makes the application refuse a part as a whole. What is wrong is left out of the settings, and lost. */
  findings: Finding[];
  /** Parts without a version: nothing starts with them. They are in the settings, read as those of the newest version. */
  versionless: Finding[];
  /** Why a part could not be read at all: nothing of it is in the settings. */
  unread: Finding[];
  /** What it refuses on some computers. */
  warnings: Finding[];
}

/**
 * Joins the parts of one computer, each migrated from its own version as the application does it.
 * @param unnamed which part one is that does not say so.
 * @throws RdError `ERR_PROFILE_INVALID` for two parts of the same kind.
 */
export function joinParts(
  parts: readonly (ImportedPart & { platform: Platform })[],
  unnamed: Part = 'locked',
): JoinedParts {
  const read = parts.map((part) => interpretPart(part, part.part ?? unnamed, part.platform));
  const locked = only(read, 'locked');
  const defaults = only(read, 'defaults');
  const settings: JsonObject = { version: SCHEMA_VERSION };
  const held = new Map(leaves(locked?.settings ?? {}));
  for (const [path, value] of leaves(defaults?.settings ?? {})) setLeaf(settings, path, value);
  for (const [path, value] of held) setLeaf(settings, path, value);
  held.delete('version');
  return {
    settings,
    locked: [...held.keys()],
    fidelity: [locked, defaults].flatMap((part) => part?.fidelity.map((entry) => covered(entry, held)) ?? []),
    findings: read.flatMap((part) => part.findings),
    versionless: read.flatMap((part) => part.versionless ?? []),
    unread: read.flatMap((part) => part.unread ?? []),
    warnings: read.flatMap((part) => part.warnings),
  };
}

/** As the `locked` map of a profile document. */
function lockedMap(paths: readonly SettingPath[]): JsonObject {
  const map: JsonObject = {};
  for (const path of paths) setLeaf(map, path, true);
  return map;
}

function only(parts: readonly Interpreted[], part: Part): Interpreted | undefined {
  const [first, second] = parts.filter((each) => each.part === part);
  if (!first || !second) return first;
  throw new RdError('ERR_PROFILE_INVALID', `there are two ${part} profiles: ${first.source} and ${second.source}`, {
    advice: 'Give one of them: --part says which part a file is, and of two in one file one must go.',
  });
}

/** A default below a locked value never counts, and one profile document holds one value for each setting. */
function covered(entry: Fidelity, held: ReadonlyMap<string, unknown>): Fidelity {
  if (entry.outcome === 'lost' || entry.part === 'locked' || !held.has(entry.path)) return entry;
  const place = (entry.outcome === 'changed' ? entry.from : undefined) ?? entry.path;
  return { outcome: 'lost', part: entry.part, place, reason: 'the locked profile holds the setting' };
}

/** What joined parts are as a profile document, which people keep and share. */
export interface ImportedProfile {
  /** At the newest version. Secrets are references to variables. */
  settings: JsonObject;
  locked: readonly SettingPath[];
  fidelity: Fidelity[];
  /** Variables that secrets are to be read from. */
  variables: string[];
}

/** Names that no document may have: they would reach the prototypes of objects. */
const FORBIDDEN = ['__proto__', 'constructor', 'prototype'];

/** Takes out what a document must not, or cannot, hold; each is accounted for. */
export function importedProfile({ settings, locked, fidelity }: JoinedParts): ImportedProfile {
  const kept = copyOfObject(settings);
  const changed = new Map<string, string>();
  const variables: string[] = [];
  const lost: Fidelity[] = [];
  for (const { path, sensitive, type } of FIELDS) {
    const value = leafAt(kept, path);
    if (sensitive && value !== undefined && value !== '') {
      const fromEnv = secretVariable(path);
      setLeaf(kept, path, { fromEnv });
      variables.push(fromEnv);
      changed.set(path, `it is a secret, and the result names the variable ${fromEnv} instead`);
    } else if (type.startsWith('map') && isObject(value)) {
      for (const name of FORBIDDEN.filter((each) => Object.hasOwn(value, each))) {
        delete value[name];
        const part = locked.includes(path) ? 'locked' : 'defaults';
        lost.push({
          outcome: 'lost',
          part,
          place: `${path}.${name}`,
          reason: 'no document may have a key of that name',
        });
      }
    }
  }
  const entries = fidelity.map((entry): Fidelity => {
    if (entry.outcome === 'lost') return entry;
    const reason = changed.get(entry.path);
    return reason === undefined ? entry : { ...entry, outcome: 'changed', reason };
  });
  return { settings: kept, locked, fidelity: [...entries, ...lost], variables };
}

/** The document as JSON holds it. It leaves the power state alone, as deployment profiles do. */
export function profileDocument({ settings, locked }: ImportedProfile): JsonObject {
  return { apiVersion: API_VERSION, kind: KIND, settings, locked: lockedMap(locked), state: 'unmanaged' };
}
