import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { Platform } from '../../src/settings/field.ts';
import { own } from '../../src/settings/own.ts';
import { entryProblem, nameProblem, numberProblem, textProblem, ValueNames } from '../formats/registry.ts';
import { xmlProblem } from '../formats/xml.ts';
import { ATLAS, type Place, type Section } from './atlas.ts';

/** A value that a platform's storage of profiles cannot represent. */
interface Unholdable {
  /** The setting or section of the value. */
  place: Place | Section;
  names: readonly string[];
  reason: string;
}

/** Settings that property lists (macOS) and the registry (Windows) cannot represent; the JSON of Linux can represent all. */
export type Holding = Readonly<Record<Platform, readonly Unholdable[]>>;

/** Finds every value at a known path that cannot be deployed, whatever the release. Unknown names are never deployed. */
export function holdingOf(settings: JsonObject): Holding {
  const darwin = unholdable(settings, PROPERTY_LIST);
  return { darwin, linux: [], win32: unholdable(settings, REGISTRY) };
}

interface Form {
  foldsCase: boolean;
  /** Returns the reason why the form cannot represent a value that is neither list nor object, as a clause. */
  value(value: JsonValue): string | undefined;
  key(key: string): string | undefined;
  item(item: string): string | undefined;
}

const PROPERTY_LIST: Form = {
  foldsCase: false,
  value: (value) => {
    if (value === null) return 'a property list has no null';
    return typeof value === 'string' ? xmlProblem(value) : undefined;
  },
  key: xmlProblem,
  item: () => undefined,
};

export const NO_NULL_IN_REGISTRY = 'the registry has no null';

const REGISTRY: Form = {
  foldsCase: true,
  value: (value) => {
    if (value === null) return NO_NULL_IN_REGISTRY;
    if (typeof value === 'string') return textProblem(value);
    return typeof value === 'number' ? numberProblem(value) : undefined;
  },
  key: (key) => {
    const problem = nameProblem(key);
    return problem === undefined ? undefined : `its name ${problem}`;
  },
  item: entryProblem,
};

function unholdable(settings: JsonObject, form: Form): Unholdable[] {
  const found: Unholdable[] = [];
  inSection(settings, ATLAS, [], { form, found });
  return found;
}

interface Search {
  form: Form;
  found: Unholdable[];
}

function inSection(object: JsonObject, section: Section, above: readonly string[], search: Search): void {
  const { form, found } = search;
  for (const name of Object.keys(object)) {
    const value = own(object, name) ?? null;
    if (above.length === 0 && name === 'version') {
      const reason = form.value(value);
      if (reason !== undefined) found.push({ place: section, names: [name], reason });
      continue;
    }
    const node = section.members.get(name) ?? (form.foldsCase ? section.folded.get(name.toLowerCase()) : undefined);
    if (!node) continue;
    const names = [...above, name];
    if ('section' in node && isObject(value)) inSection(value, node.section, names, search);
    else inValue(value, 'place' in node ? node.place : node.section, names, search);
  }
}

/** Checks the members of a list or map of plain values, one level deep; anything deeper has the wrong type on every platform. */
function inValue(value: JsonValue, place: Place | Section, names: readonly string[], { form, found }: Search): void {
  const report = (at: readonly string[], reason: string | undefined) => {
    if (reason !== undefined) found.push({ place, names: at, reason });
  };
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      report([...names, String(index)], typeof item === 'string' ? (form.item(item) ?? form.value(item)) : undefined);
    }
  } else if (isObject(value)) {
    const known = new ValueNames();
    for (const [key, inner] of Object.entries(value)) {
      const at = [...names, key];
      if (form.foldsCase && known.add(key) !== undefined) {
        report(at, 'the registry ignores letter case and cannot distinguish the two names');
      }
      report(at, form.key(key) ?? (isObject(inner) || Array.isArray(inner) ? undefined : form.value(inner)));
    }
  } else report(names, form.value(value));
}
