import { basename } from 'node:path';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import type { Platform } from '../../src/settings/field.ts';
import type { DeploymentTree } from './tree.ts';

/** The two deployment profiles of a computer: `locked` applies at every start, `defaults` only at the first. */
export const PARTS = ['locked', 'defaults'] as const;
export type Part = (typeof PARTS)[number];

/** A value in the file that was not imported. */
export interface Loss {
  /** Location of the value, in the format's own notation: `HKEY_LOCAL_MACHINE\…\Locked\kubernetes: enabled`, or a dotted path. */
  place: string;
  /** A clause: `it is not a setting`. */
  reason: string;
  /** Set if the value is not part of any profile in the file. */
  outside?: true;
  /** Set if the application rejects the whole profile because of the value. */
  refused?: true;
  /** Names within the profile, for a value of the wrong type. */
  names?: readonly string[];
}

/** One deployment profile as written in a file: with the version, names and types that the file uses. */
export interface ImportedPart {
  /** Part of the profile; absent if the format does not distinguish the two. */
  part?: Part;
  /** The file, with the key or payload if it has several. */
  source: string;
  settings: JsonObject;
  lost: Loss[];
  /** Caveats for the user, one sentence each: `its signature was not checked`. */
  notes?: readonly string[];
}

/** The deployment formats that can be imported. */
export type FormatName = 'plist' | 'mobileconfig' | 'reg' | 'registry.pol' | 'json';

/**
 * Maximum size of a deployment file in bytes. A file with every setting has about five thousand, but pattern lists may be long, and some
 * formats take several times the space of a 1 MiB document.
 */
export const PROFILE_LIMIT = 16 * 1024 * 1024;

/** Reads one format. */
export interface Importer {
  name: FormatName;
  /** The system on which the application reads this format. */
  platform: Platform;
  /** Whether the bytes look like this format; the first importer in the list that recognizes them is used. */
  recognizes(bytes: Uint8Array): boolean;
  /**
   * Reads every profile in the file, in the order of `PARTS`.
   * @param label name for messages: the path as given, or `<stdin>`.
   * @throws RdError `ERR_PROFILE_INVALID` for a file that cannot be parsed, with the line or location; nothing is imported in part.
   */
  read(bytes: Uint8Array, label: string): Promise<ImportedPart[]>;
}

/** Decodes a text without a byte order mark; returns undefined if the bytes have another encoding. */
export function decodeText(
  bytes: Uint8Array,
  encoding: 'utf-8' | 'utf-16le' | 'utf-16be' = 'utf-8',
): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Root of the registry for a profile: all users of the computer, or the current user. */
export type Hive = 'hklm' | 'hkcu';

/** The encoding of a registry file. */
export const REGISTRY_ENCODINGS = ['utf-8', 'utf-16le'] as const;
export type RegistryEncoding = (typeof REGISTRY_ENCODINGS)[number];

/**
 * The bytes of a registry file. `utf-16le`, with a byte order mark and CRLF, is what the registry editor itself writes; it preserves every
 * character. `utf-8` is the plain text as the compatible tool prints it: without a byte order mark the editor assumes the computer's code
 * page, so only ASCII is safe (`isAscii`).
 * @param text with LF line ends, as `regText` returns it.
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
  /** Registry hive; only used by `reg`. */
  hive: Hive;
}

/** Writes a deployment profile in one format. */
export interface Exporter {
  /** Name for `--output`. */
  name: string;
  /** The system on which the application reads this format. */
  platform: Platform;
  /** The file name that the application or management tools expect, such as `locked.json`. It may depend on the hive. */
  fileName(part: Part, hive: Hive): string;
  /**
   * Returns the text of the file.
   * @throws RdError `ERR_PROFILE_INVALID` with the path of every value that the format cannot represent, and the reason.
   */
  text(tree: DeploymentTree, options: ExportOptions): string;
}

/** Called for each value that the format cannot represent, with the path of the setting or entry and the reason as a clause. */
export type Refuse = (path: string, reason: string) => void;

/**
 * Returns the result of `write` unless it refused something. Reports all refusals at once, so that no incomplete file is written.
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

/** Returns the profile that a file name indicates, such as `locked.json` or `io.rancherdesktop.profile.defaults.plist`. */
export function partOfName(label: string): Part | undefined {
  const word = /(?:^|[._-])(locked|defaults)\.[a-z]+$/i.exec(basename(label.replaceAll('\\', '/')))?.[1]?.toLowerCase();
  return word === 'locked' || word === 'defaults' ? word : undefined;
}
