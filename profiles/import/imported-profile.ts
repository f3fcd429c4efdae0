import { isObject, type JsonObject } from '../../src/json.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { copyOfObject } from '../../src/settings/own.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import { API_VERSION, KIND } from '../shape.ts';
import { secretVariable } from '../write.ts';
import type { Fidelity } from './fidelity.ts';
import { type JoinedParts, lockedMap } from './join.ts';

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
