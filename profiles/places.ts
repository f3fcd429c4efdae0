import { pointerTo } from '../src/settings/leaf-paths.ts';
import { namesBefore } from '../src/settings/migrate.ts';
import type { Part } from './settings-part.ts';

/** A place in one of the documents, counted from 1. */
interface Place {
  file: string;
  line: number;
  column: number;
  /** RFC 6901, in that document. */
  pointer: string;
}

/**
 * Where the documents ask for something: of a setting (the names of its path, and the key of an entry) or of `state` and
 * `portForwards`, the key there or the value. `undefined` for what no document mentions. Nothing is looked up before it is
 * called.
 */
export type Locate = (names: readonly string[], part: 'key' | 'value') => Place | undefined;

/** Parts of a profile beside the settings that a plan can speak about. */
const AROUND = ['state', 'portForwards'];

/** Later documents win, so their places do. What `prune` asks for is there; else the nearest thing around counts. */
export function locator(parts: readonly Part[]): Locate {
  const latestFirst = [...parts].reverse();
  return (names, part) => {
    for (let length = names.length; length > 0; length -= 1) {
      const here = names.slice(0, length);
      for (const document of latestFirst) {
        // An entry that no document lists goes because of `prune`, if that names its map.
        const place = (length < names.length && pruned(document, here)) || placeIn(document, here, part);
        if (place) return place;
      }
    }
    return undefined;
  };
}

function placeIn({ parsed, shape, origins }: Part, names: readonly string[], part: 'key' | 'value'): Place | undefined {
  const around = AROUND.includes(names[0] ?? '');
  if (around && shape.form !== 'profile') return undefined;
  const pointer = around ? pointerTo(names) : `${shape.settingsPointer}${pointerTo(namesBefore(origins, names))}`;
  const position = parsed.position(pointer, part);
  return position && { file: parsed.file, ...position, pointer };
}

/** The line of `prune` that makes a map exclusive. */
function pruned({ parsed, shape }: Part, names: readonly string[]): Place | undefined {
  const index = shape.prune?.indexOf(names.join('.')) ?? -1;
  const pointer = `/prune/${index}`;
  const position = index === -1 ? undefined : parsed.position(pointer);
  return position && { file: parsed.file, ...position, pointer };
}
