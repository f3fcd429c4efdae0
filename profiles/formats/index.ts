import { basename } from 'node:path';
import { RdError } from '../../src/errors.ts';
import type { Platform } from '../../src/settings/field.ts';
import { tooLong } from '../../src/settings/source-text.ts';
import { type Exporter, type FormatName, type Importer, PROFILE_LIMIT, partOfName } from './format.ts';

/** Every export format, loaded on demand. One line each. */
export const EXPORTERS: Readonly<Record<string, () => Promise<Exporter>>> = {
  plist: async () => (await import('./plist.ts')).plistExporter,
  mobileconfig: async () => (await import('./mobileconfig.ts')).mobileconfigExporter,
  json: async () => (await import('./json.ts')).jsonExporter,
  reg: async () => (await import('./reg.ts')).regExporter,
};

/** Every import format, in the order of detection; loaded on demand. One line each. */
export const IMPORTERS: readonly (() => Promise<Importer>)[] = [
  async () => (await import('./mobileconfig.ts')).mobileconfigImporter,
  async () => (await import('./plist.ts')).plistImporter,
  async () => (await import('./reg.ts')).regImporter,
  async () => (await import('./pol.ts')).registryPolImporter,
  async () => (await import('./json.ts')).jsonImporter,
];

/** The bytes of a file, or of the part of it that was read. */
interface FileBytes {
  bytes: Uint8Array;
  size: number;
  /** Display name, for messages. */
  label: string;
}

/** Finds the reader of a deployment format; returns undefined for YAML and JSON. */
export async function importerFor({ bytes, size, label }: FileBytes): Promise<Importer | undefined> {
  if (size > PROFILE_LIMIT) throw new RdError('ERR_PROFILE_INVALID', `${label} ${tooLong(size, PROFILE_LIMIT)}`);
  refuseTemplates(bytes, label);
  for (const load of IMPORTERS) {
    const importer = await load();
    if (importer.recognizes(bytes)) return importer;
  }
  return undefined;
}

/** Matches the beginning of ADMX and ADML files, possibly after a license comment. */
const TEMPLATES = /<policyDefinition(?:Resource)?s[\s>]/;
const HEAD = 16 * 1024;

/** Refuses administrative templates. @throws RdError `ERR_PROFILE_INVALID`. */
function refuseTemplates(bytes: Uint8Array, label: string): void {
  const head = bytes.subarray(0, HEAD);
  const encoding = head[0] === 0xff && head[1] === 0xfe ? 'utf-16le' : 'utf-8';
  const text = new TextDecoder(encoding).decode(head);
  if (!/^\s*</.test(text) || !TEMPLATES.test(text)) return;
  throw new RdError(
    'ERR_PROFILE_INVALID',
    `${label} contains templates for Group Policy (ADMX or ADML), not settings`,
    {
      advice:
        'What was set with the templates is in the Registry.pol of the policy object, and in the registry of its computers: read that file, or run `rdctl import-profile --from-system` there.',
    },
  );
}

/** The kind of a file, detected from its content. */
export type Content = FormatName | 'yaml' | 'profile';

/** A file whose name indicates another format than its content. */
export interface NameMismatch {
  /** The system that would look for a file of that name and fail to read it. */
  platform: Platform;
  /** Reason as a clause: `its name says registry file, and it is JSON`. */
  reason: string;
}

const FORMATS: Readonly<Record<string, { format: FormatName; platform: Platform }>> = {
  plist: { format: 'plist', platform: 'darwin' },
  mobileconfig: { format: 'mobileconfig', platform: 'darwin' },
  reg: { format: 'reg', platform: 'win32' },
  pol: { format: 'registry.pol', platform: 'win32' },
  json: { format: 'json', platform: 'linux' },
};

const WORDS: Readonly<Record<Content, string>> = {
  plist: 'a property list',
  mobileconfig: 'a configuration profile',
  reg: 'a registry file',
  'registry.pol': 'a policy file of Windows',
  json: 'JSON',
  yaml: 'YAML',
  profile: 'a profile document',
};

/**
 * Compares the name of a file with its content; returns undefined if they agree or the name indicates no format. Any file may end in `.json`; on
 * Linux the application only looks for names such as `locked.json`.
 */
export function nameMismatch(label: string, content: Content): NameMismatch | undefined {
  const extension = /\.([a-z]+)$/i.exec(basename(label.replaceAll('\\', '/')))?.[1]?.toLowerCase() ?? '';
  const namedFormat = Object.hasOwn(FORMATS, extension) ? FORMATS[extension] : undefined;
  if (!namedFormat || namedFormat.format === content) return undefined;
  const document = content === 'yaml' || content === 'profile';
  if (namedFormat.format === 'json' && document && partOfName(label) === undefined) return undefined;
  return {
    platform: namedFormat.platform,
    reason: `its name says ${WORDS[namedFormat.format]}, and it is ${WORDS[content]}`,
  };
}
