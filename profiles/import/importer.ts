import type { JsonObject } from '../../src/json.ts';
import type { Part } from '../deployment/part.ts';

/** Something that stands in a file and is not in what was read from it. */
export interface Loss {
  /** Where it stood, in the words of the format: `HKEY_LOCAL_MACHINE\…\Locked\kubernetes: enabled`, or a dotted path. */
  place: string;
  /** A clause: `it is no setting`. */
  reason: string;
}

/** One deployment profile as a file holds it: at its own version, by the names and in the types of that version. */
export interface ImportedPart {
  /** Absent where the format does not say which of the two it is. */
  part?: Part;
  /** File, and the key or payload in it where it has several. */
  source: string;
  settings: JsonObject;
  lost: Loss[];
}

/** Reads one format. */
export interface Importer {
  name: string;
  /** Whether bytes look like this format; the first importer of the list that says so reads them. */
  recognises(bytes: Uint8Array): boolean;
  /**
   * Every profile in the file, in the order of `PARTS`.
   * @param label for messages: the path as given, or `<stdin>`.
   * @throws RdError `ERR_PROFILE_INVALID` for a file that is not understood, with line or place; a part of it is never taken
   *   for the whole.
   */
  read(bytes: Uint8Array, label: string): Promise<ImportedPart[]>;
}
