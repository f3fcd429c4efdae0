import { isNode, parseDocument as parseYaml, visit } from 'yaml';
import { RdError } from '../../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../src/json.ts';
import { type CheckContext, checkSettings, dependsOnSystem } from '../../../src/settings/check.ts';
import { FIELDS } from '../../../src/settings/fields.gen.ts';
import { type Finding, formatFindings } from '../../../src/settings/issue.ts';
import { leafAt, leaves, pointerOf } from '../../../src/settings/leaf-paths.ts';
import { equal } from '../../../src/settings/own.ts';
import type { ParsedDocument } from '../../../src/settings/parse.ts';
import type { SettingPath } from '../../../src/settings/settings.gen.ts';
import { inTextOrder, reporter } from '../report.ts';
import { readShape, type Shape } from '../shape.ts';
import { parseSource, READ_AS_JSON } from '../source.ts';
import { flow } from '../write.ts';
import { withoutReferences } from '../written-settings.ts';
import { type Change, NEWEST, platformDependent, upgradeOf } from './changes.ts';
import { commentsIn } from './document-tree.ts';
import { type Rewritten, rewritten } from './rewrite.ts';

/** A document before and after its upgrade. */
export interface Upgraded {
  /** Settings version of the document. */
  from: number;
  to: number;
  /** Changes in document order; empty if the document already has the newest version. */
  changes: readonly CommentedChange[];
  /** Settings whose new value depends on the platform. */
  platformDependent: readonly SettingPath[];
  /** Caveats about the result. */
  notices: readonly string[];
  before: string;
  after: string;
  /** The texts for display, with secrets masked. */
  shown: { before: string; after: string };
}

interface CommentedChange extends Change {
  /** Comments that were removed with a setting or with entries of it, with secrets masked. */
  comments?: readonly string[];
}

const FREEZE = 'experimental.containerEngine.webAssembly.enabled';

/**
 * Rewrites the text of a YAML or JSON document, bare settings or a profile, to the newest settings version. Other lines keep every character,
 * settings that moved keep their comments, and those of removed settings are removed. The result is read again and compared with the migration of the
 * old settings before it is returned.
 * @param context context of the document's system: a few old values depend on it.
 * @throws RdError `ERR_PROFILE_INVALID` with every finding, or if no result can be verified.
 */
export async function upgradeDocument(source: Uint8Array, label: string, context: CheckContext): Promise<Upgraded> {
  const old = await readDocument(source, label, context);
  if (old.findings.length > 0) {
    const n = old.findings.length;
    throw new RdError('ERR_PROFILE_INVALID', `${n} error${n === 1 ? '' : 's'} in ${label}; nothing was written.`, {
      details: formatFindings(inTextOrder(old.findings)),
      advice: 'Fix the document first; its meaning is ambiguous.',
    });
  }
  const decoded = new TextDecoder('utf-8', { ignoreBOM: true }).decode(source);
  const mark = decoded.startsWith('\ufeff') ? '\ufeff' : '';
  const before = decoded.slice(mark.length);
  const from = Number(old.settings.version);
  const unchanged = { before: decoded, after: decoded, shown: { before: decoded, after: decoded } };
  if (from === NEWEST) return { from, to: NEWEST, changes: [], platformDependent: [], notices: [], ...unchanged };

  const { changes, settings } = upgradeOf(old.settings, context.platform);
  const after = await verifyText(before, label, old, changes, settings, context);
  const masked = (text: string, document: ReadDocument) => withMaskedSecrets(text, document, secretsOf(old));
  return {
    from,
    to: NEWEST,
    changes: changes.map((change) => {
      const comments = after.dropped.get(change)?.map((text) => withoutSecrets(text, secretsOf(old)));
      return comments ? { ...change, comments } : change;
    }),
    platformDependent: platformDependent(old.settings),
    notices: noticesOf(old, from, settings, label),
    before: decoded,
    after: `${mark}${after.text}`,
    shown: { before: masked(before, old), after: masked(after.text, after.document) },
  };
}

/**
 * Verifies the new text. Aliases stay if the result is right with them. If an anchor moved behind its alias, or changed, all are written out.
 * @throws RdError `ERR_PROFILE_INVALID` if no result can be verified.
 */
async function verifyText(
  text: string,
  label: string,
  old: ReadDocument,
  changes: readonly Change[],
  settings: JsonObject,
  context: CheckContext,
): Promise<Rewritten & { document: ReadDocument }> {
  const { value, shape } = old;
  const input = { value, at: shape.settingsPointer, version: Number(old.settings.version), platform: context.platform };
  for (const start of [text, withoutAliases(text)]) {
    const after = rewritten({ ...input, text: start, changes });
    const document = after && (await verifyRewrite(after, text, old, settings, label, context));
    if (after && document) return { ...after, document };
  }
  throw new RdError('ERR_PROFILE_INVALID', `${label} could not be upgraded in its current form; nothing was written`, {
    details: changes.map(
      ({ from, to, reason }) => `${from}${to === undefined || to === from ? '' : ` → ${to}`}: ${reason}`,
    ),
    advice: 'Write the sections that these settings are in with one setting per line, and try again.',
  });
}

/** Returns the new text as a document, if it has the meaning of the migration and all comments except those of removed settings. */
async function verifyRewrite(
  { text, dropped }: Rewritten,
  before: string,
  old: ReadDocument,
  settings: JsonObject,
  label: string,
  context: CheckContext,
): Promise<ReadDocument | undefined> {
  const document = await readDocument(text, label, context);
  if (document.findings.length > 0 || document.shape.form !== old.shape.form) return undefined;
  const found = Object.fromEntries(leaves(document.settings));
  const wanted = { ...Object.fromEntries(leaves(settings)), version: NEWEST };
  if (!equal(found, wanted)) return undefined;
  if (old.shape.form === 'profile' && !equal({ ...document.value, settings: {} }, { ...old.value, settings: {} })) {
    return undefined;
  }
  const comments = [...commentsIn(text), ...[...dropped.values()].flat()];
  return equal(comments.sort(), commentsIn(before).sort()) ? document : undefined;
}

/** Returns notices about settings that the application adds to a locked profile of an old version, and that the upgraded document lacks. */
function noticesOf({ shape }: ReadDocument, from: number, settings: JsonObject, label: string): string[] {
  const locked = shape.locked !== undefined && Object.keys(shape.locked).length > 0;
  const named = shape.form === 'settings' && /(^|[./\\])locked\.[^/\\]*$/.test(label);
  if (from > 10 || !(locked || named) || leafAt(settings, FREEZE) !== undefined) return [];
  return [
    `as a locked deployment profile, version ${from} also locked ${FREEZE} to false, which was newer than it; ` +
      `the upgraded document does not${locked ? '' : ' any more'}. To keep it, add it to the settings${locked ? ' and to locked' : ''}.`,
  ];
}

/** Returns the secrets that are written in the document. */
function secretsOf({ settings }: ReadDocument): string[] {
  return FIELDS.flatMap(({ path, sensitive }) => {
    const value = sensitive ? leafAt(settings, path) : undefined;
    return typeof value === 'string' && value !== '' ? [value] : [];
  });
}

/** Returns the text with each secret masked in its place, and elsewhere if it is too long to be an ordinary word. */
function withMaskedSecrets(
  text: string,
  { parsed, settings, shape }: ReadDocument,
  secrets: readonly string[],
): string {
  const lines = text.split('\n');
  const pieces = FIELDS.flatMap(({ path, sensitive }) => {
    const value = sensitive ? leafAt(settings, path) : undefined;
    const pointer = `${shape.settingsPointer}${pointerOf(path)}`;
    const [place, source] = [parsed.position(pointer), parsed.sourceText(pointer)];
    if (typeof value !== 'string' || value === '' || !place || source === undefined || source.startsWith('*'))
      return [];
    const offset = lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, place.column - 1);
    return [{ offset, length: source.length, text: MASK }];
  });
  return withoutSecrets(withReplacements(text, pieces), secrets);
}

/** Returns the text with its aliases replaced by their values. */
function withoutAliases(text: string): string {
  const document = parseYaml(text, { uniqueKeys: false, logLevel: 'silent' });
  const values: Replacement[] = [];
  visit(document, {
    Alias: (_key, alias) => {
      const node = alias.resolve(document);
      if (!isNode(node) || !alias.range) return;
      const value: JsonValue = JSON.parse(JSON.stringify(node.toJS(document)));
      const [offset, end] = alias.range;
      values.push({ offset, length: end - offset, text: flow(value) });
    },
  });
  return withReplacements(text, values);
}

/** A document whose text is to be upgraded. */
interface ReadDocument {
  parsed: ParsedDocument;
  value: JsonObject;
  shape: Shape;
  /** Settings as written: at their own version, with references to secrets. */
  settings: JsonObject;
  /** All problems, except those that depend on the system or on other settings. */
  findings: Finding[];
}

/** Reads and checks a document as `rdctl validate` does, without looking up the secrets that it refers to. */
async function readDocument(source: string | Uint8Array, label: string, context: CheckContext): Promise<ReadDocument> {
  const bytes = typeof source === 'string' ? Buffer.from(source) : source;
  const parsed = parseSource({ name: label, label, bytes, size: bytes.length }, READ_AS_JSON.both);
  const findings: Finding[] = [...parsed.findings];
  const shape = readShape(parsed, reporter(parsed, findings));
  const document = { parsed, value: asObject(parsed.value), shape, settings: {}, findings };
  if (!shape.settings) return document;
  const at = shape.settingsPointer;
  const checked = await checkSettings({ document: parsed, at, settings: withoutReferences(shape.settings) }, context);
  const wrong = checked.findings.filter(({ code }) => !dependsOnSystem(code));
  return {
    ...document,
    settings: shape.settings,
    findings: [...findings, ...wrong.map(({ code: _, ...finding }) => finding)],
  };
}

function asObject(value: JsonValue | undefined): JsonObject {
  return value !== undefined && isObject(value) ? value : {};
}

const MASK = '********';
/** Characters from which on a secret is masked wherever it occurs. */
const LONG_SECRET = 6;

/** A part of a text and its replacement. */
interface Replacement {
  offset: number;
  length: number;
  text: string;
}

/** Replaces these parts of a text. They may come in any order but must not overlap. */
export function withReplacements(text: string, replacements: readonly Replacement[]): string {
  return [...replacements]
    .sort((a, b) => b.offset - a.offset)
    .reduce((result, each) => {
      return result.slice(0, each.offset) + each.text + result.slice(each.offset + each.length);
    }, text);
}

/** Masks repetitions of secrets in a text, unless a secret is so short that it may be an ordinary word. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= LONG_SECRET)
    .reduce((result, secret) => result.replaceAll(secret, MASK), text);
}
