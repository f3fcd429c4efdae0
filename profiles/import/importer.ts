import type { JsonObject } from '../../src/json.ts';
import { POLICY_LIMIT } from '../../src/policies/policy-file.ts';
import type { Platform } from '../../src/settings/field.ts';
import type { Part } from '../deployment/part.ts';

/** Something that stands in a file and is not in what was read from it. */
export interface Loss {
  /** Where it stood, in the words of the format: `HKEY_LOCAL_MACHINE\…\Locked\kubernetes: enabled`, or a dotted path. */
  place: string;
  /** A clause: `it is no setting`. */
  reason: string;
  /** It was in the file and in none of its profiles. */
  outside?: true;
  /** The application refuses the whole profile for it. */
  refused?: true;
  /** Of a value that is refused for its type: its names below the profile. */
  names?: readonly string[];
}

/** One deployment profile as a file holds it: at its own version, by the names and in the types of that version. */
export interface ImportedPart {
  /** Absent where the format does not say which of the two it is. */
  part?: Part;
  /** File, and the key or payload in it where it has several. */
  source: string;
  settings: JsonObject;
  lost: Loss[];
  /** What somebody who relies on the file should know, one sentence each: `its signature was not checked`. */
  notes?: readonly string[];
}

/** Deployment formats that are read. */
export type FormatName = 'plist' | 'mobileconfig' | 'reg' | 'registry.pol' | 'json';

/** Largest file of a deployment format that is imported, in bytes: what is deployed can be read back. */
export const IMPORT_LIMIT = POLICY_LIMIT;

/** Reads one format. */
export interface Importer {
  name: FormatName;
  /** The system whose application reads such a profile. */
  platform: Platform;
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
