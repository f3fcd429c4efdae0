import { undoes, type Writer } from '../../plan/healing.ts';
import type { KeptProfile } from '../../plan/kept.ts';

/** Tracks who wrote each field last, besides its kept profile. */
export interface Writers {
  /** Records a writer. `names` are the written fields in the form of `changeName`. */
  note(names: readonly string[], writer: Writer): void;
  last(name: string): Writer | undefined;
  /** Returns the rollback that undid the last apply of a profile. */
  undoing(profile: KeptProfile): Writer | undefined;
}

/** Creates the writers. `kept` returns the profiles that are kept now. */
export function createWriters(kept: () => readonly KeptProfile[]): Writers {
  const writers = new Map<string, Writer>();
  const undoings = new Map<string, Writer>();
  return {
    note(names, writer) {
      const { how, profile } = writer.by;
      if (how === 'heal') return;
      for (const each of kept()) if (undoes(writer, each)) undoings.set(each.name, writer);
      const isOwn = how === 'apply' && kept().some(({ name }) => name === profile);
      for (const name of names) {
        if (isOwn) writers.delete(name);
        else writers.set(name, writer);
      }
    },
    last: (name) => writers.get(name),
    undoing(profile) {
      const undoing = undoings.get(profile.name);
      return undoing && undoes(undoing, profile) ? undoing : undefined;
    },
  };
}
