import { basename } from 'node:path';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import type { Platform } from '../../src/settings/field.ts';
import type { DeploymentTree } from './tree.ts';

/** The two deployment profiles of a computer: `locked` holds at every start, `defaults` at the first one only. */
export const PARTS = ['locked', 'defaults'] as const;
export type Part = (typeof PARTS)[number];

/** Something in a file that is missing from what was read. */
export interface Loss {
  /** Where it stood, in the words of the format: `HKEY_LOCAL_MACHINE\…\Locked\kubernetes: enabled`, or a dotted path. */
  place: string;
  /** A clause: `it is not a setting`. */
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
  /** Caveats for those who rely on the file, one sentence each: `its signature was not checked`. */
  notes?: readonly string[];
}

/** Deployment formats that are read. */
export type FormatName = 'plist' | 'mobileconfig' | 'reg' | 'registry.pol' | 'json';

/**
 * Largest deployment file that is read, in bytes. One with every setting has some five thousand, but a list of patterns may be
 * long, and what a document of 1 MiB says takes several times as much in some formats.
 */
export const PROFILE_LIMIT = 16 * 1024 * 1024;

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

/** The text, without a byte order mark; `undefined` where the bytes are of another encoding. */
export function decoded(bytes: Uint8Array, encoding: 'utf-8' | 'utf-16le' | 'utf-16be' = 'utf-8'): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Root of the registry that a profile goes below: all users of the computer, or the present one. */
export type Hive = 'hklm' | 'hkcu';

/** How the text of a registry file becomes bytes. */
export const REGISTRY_ENCODINGS = ['utf-8', 'utf-16le'] as const;
export type RegistryEncoding = (typeof REGISTRY_ENCODINGS)[number];

/**
 * The bytes of a registry file. `utf-16le` is what the registry editor writes itself, with a byte order mark and CRLF, and what
 * it reads with any character. `utf-8` is the text as it is, as the compatible tool prints it: without a mark the editor takes
 * it for the code page of the computer, so that only ASCII arrives (`isAscii`).
 * @param text with LF at line ends and nowhere else, as `regText` returns it.
 */
export function encodeRegistryFile(text: string, encoding: RegistryEncoding): Buffer {
  if (encoding === 'utf-8') return Buffer.from(text, 'utf8');
  return Buffer.from(`\ufeff${text.replaceAll('\n', '\r\n')}`, 'utf16le');
}

/** Whether the text is the same in every code page. */
export function isAscii(text: string): boolean {
  return /^[\0-\x7f]*$/.test(text);
}

export interface ExportOptions {
  part: Part;
  /** Used by `reg` alone. */
  hive: Hive;
}

/** Writes a deployment profile in one format. */
export interface Exporter {
  /** As it is given to `--output`. */
  name: string;
  /** The system whose application reads it. */
  platform: Platform;
  /** The file as the application or its administrator's tools look for it: `locked.json`. Those of the two hives differ. */
  fileName(part: Part, hive: Hive): string;
  /**
   * The text of the file.
   * @throws RdError `ERR_PROFILE_INVALID` with the path of everything that the format cannot hold, and why; nothing is replaced.
   */
  text(tree: DeploymentTree, options: ExportOptions): string;
}

/** Called with what a format cannot hold: the path of the setting or entry, and the reason as a clause. */
export type Refuse = (path: string, reason: string) => void;

/**
 * What `write` returns, unless it refused something. All refusals are reported at once, and no incomplete file is written.
 * @param format as a subject: `a property list`.
 * @throws RdError `ERR_PROFILE_INVALID` with every refusal as `path: reason` (`details`).
 */
export function collectingRefusals<T>(format: string, write: (refuse: Refuse) => T): T {
  const details: string[] = [];
  const written = write((path, reason) => void details.push(`${path}: ${reason}`));
  if (details.length === 0) return written;
  throw new RdError('ERR_PROFILE_INVALID', `${format} cannot represent these values:`, {
    details,
    advice: 'Change or remove these values; rdctl does not replace them.',
  });
}

/** Which of the two profiles a file is by its name: `locked.json`, `io.rancherdesktop.profile.defaults.plist`. */
export function partOfName(label: string): Part | undefined {
  const word = /(?:^|[._-])(locked|defaults)\.[a-z]+$/i.exec(basename(label.replaceAll('\\', '/')))?.[1]?.toLowerCase();
  return word === 'locked' || word === 'defaults' ? word : undefined;
}
