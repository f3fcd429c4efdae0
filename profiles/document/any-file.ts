import type { JsonObject } from '../../src/json.ts';
import type { Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { type Finding, formatFindings } from '../../src/settings/finding.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import { isLocked } from '../../src/settings/locks.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import {
  type FormatName,
  type ImportedPart,
  type Importer,
  type Loss,
  type Part,
  PROFILE_LIMIT,
  partOfName,
} from '../formats/format.ts';
import { importerFor } from '../formats/index.ts';
import { type DocumentPart, type LoadContext, readPart } from './load.ts';
import type { UnreadSecret } from './secrets.ts';
import { readSource, type Source } from './source.ts';

/** One set of settings in a file: a deployment profile, or the settings of a document. */
interface AnyPart {
  /** Absent where nothing says which of the two it is: bare settings and profile documents. */
  part?: Part;
  /** File, and the place in it where it holds several. */
  source: string;
  /** As written: at their own version, by the names of that version, secrets in the place of references to them. */
  settings: JsonObject;
  /** What stands in the file and is not in `settings`. */
  lost: readonly Loss[];
}

/** A file with settings, whatever its format. */
export interface AnyFile {
  /** As given, or `<stdin>`. */
  label: string;
  format: 'yaml' | FormatName;
  /** `document` is YAML or JSON as `rdctl apply` takes it, `deployment` what applications read as their administrator's. */
  form: 'settings' | 'profile' | 'deployment';
  /** The system whose applications read it; absent for documents, which are for all. */
  platform?: Platform;
  parts: readonly AnyPart[];
  /** Everything that is wrong. The joined settings are not to be used then. */
  findings: readonly Finding[];
  warnings: readonly string[];
  /** All parts together at the newest version, canonical, secrets included: the locked ones over the defaults. */
  joined: { settings: JsonObject; locked: readonly SettingPath[] };
  /** Secrets that a document refers to and that cannot be read here; they are not in the settings. */
  unread: readonly UnreadSecret[];
  /** Of YAML and JSON: the text with its places, and its shape. */
  document?: DocumentPart;
}

export interface AnyFileContext extends LoadContext {
  /** What a file is that does not say it by its name. */
  part?: Part;
}

/**
 * Reads a file of any format: deployment formats are recognized by content, a Linux deployment file by name; everything
 * else is YAML or JSON. `-` is standard input.
 * @throws RdError `ERR_IO` for what cannot be read, `ERR_PROFILE_INVALID` for a deployment file that is not understood or has
 *   more than 16 MiB. What is wrong with the settings in it is in `findings`.
 */
export async function loadAnyFile(name: string, context: AnyFileContext): Promise<AnyFile> {
  const source = await readSource(name, context, PROFILE_LIMIT);
  const importer = await importerFor(source);
  // Bare settings in JSON are for everybody, unless their name says that an application reads them.
  const deployment = importer?.name !== 'json' || (partOfName(source.label) ?? context.part) !== undefined;
  if (importer && deployment) return deploymentFile(source, importer, context);
  const unread: UnreadSecret[] = [];
  const document = await readPart(source, { ...context, onUnread: (secret) => unread.push(secret) });
  return documentFile(source, document, unread);
}

async function deploymentFile(
  { bytes, label }: Source,
  { name, platform, read }: Importer,
  { part }: AnyFileContext,
): Promise<AnyFile> {
  const parts = (await read(bytes, label)).map((each) => named(each, part));
  const { joinParts } = await import('./imported-profile.ts');
  const { settings, locked, findings, fidelity, warnings, versionless } = joinParts(
    parts.map((each) => ({ ...each, platform })),
  );
  const lost = fidelity.flatMap((entry) =>
    entry.outcome === 'lost'
      ? [{ file: label, pointer: '', message: `left out: ${entry.place}: ${entry.reason}` }]
      : [],
  );
  return {
    label,
    format: name,
    form: 'deployment',
    platform,
    parts,
    findings,
    warnings: [...parts.flatMap(({ notes = [] }) => notes), ...formatFindings([...versionless, ...lost, ...warnings])],
    joined: { settings, locked },
    unread: [],
  };
}

function named(part: ImportedPart, wanted: Part | undefined): ImportedPart {
  const which = part.part ?? wanted;
  return which ? { ...part, part: which } : part;
}

function documentFile({ label, bytes }: Source, document: DocumentPart, unread: readonly UnreadSecret[]): AnyFile {
  const { shape, settings, findings, warnings } = document;
  const json = /^\s*[{[]/.test(
    Buffer.from(bytes.subarray(0, 256))
      .toString('utf8')
      .replace(/^\ufeff/, ''),
  );
  return {
    label,
    format: json ? 'json' : 'yaml',
    form: shape.form,
    parts: shape.settings ? [{ source: label, settings: document.written, lost: [] }] : [],
    findings,
    warnings,
    joined: { settings, locked: lockedPaths(shape.locked ?? {}, settings, unread) },
    unread,
    document,
  };
}

/** Settings that a record locks and that have a value, known here or not. */
function lockedPaths(record: JsonObject, settings: JsonObject, unread: readonly UnreadSecret[]): SettingPath[] {
  const has = (path: SettingPath) =>
    leafAt(settings, path) !== undefined || unread.some((secret) => secret.path === path);
  return FIELDS.filter(({ path, lockable }) => lockable && has(path) && isLocked(record, path)).map(({ path }) => path);
}
