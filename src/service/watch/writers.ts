import { undoes, type Writer } from '../../plan/healing.ts';
import type { KeptProfile } from '../../plan/kept.ts';

/** Who wrote each field last, besides its kept profile. */
export interface Writers {
  /** `names`: what was written, as `changeName` writes it. */
  note(names: readonly string[], writer: Writer): void;
  last(name: string): Writer | undefined;
  /** The rollback or return that went back over the last apply of a profile. */
  undoing(profile: KeptProfile): Writer | undefined;
}

/** `kept`: the profiles that are kept now. */
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
