import { isNode, parseDocument as parseYaml, visit } from 'yaml';
import { RdError } from '../../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../src/json.ts';
import { type CheckContext, checkSettings, dependsOnSystem } from '../../../src/settings/check.ts';
import { FIELDS } from '../../../src/settings/fields.gen.ts';
import { type Finding, formatFindings } from '../../../src/settings/issue.ts';
import { leafAt, leaves, pointerOf, setLeaf } from '../../../src/settings/leaf-paths.ts';
import { copyOfObject, equal } from '../../../src/settings/own.ts';
import { type ParsedDocument, parseDocument } from '../../../src/settings/parse.ts';
import type { SettingPath } from '../../../src/settings/settings.gen.ts';
import { inTextOrder, reporter } from '../report.ts';
import { readShape, type Shape } from '../shape.ts';
import { secretSource } from '../written-settings.ts';
import { type Change, NEWEST, platformDependent, upgradeOf } from './changes.ts';
import { type Rewritten, rewritten } from './rewrite.ts';
import { commentsIn, flowText } from './text-tree.ts';

/** A document and its upgrade. */
export interface Upgraded {
  /** Settings version of the document. */
  from: number;
  to: number;
  /** In the order of the document; empty where it is of the newest version. */
  changes: readonly CommentedChange[];
  /** Settings whose new value depends on the platform that the document was upgraded for. */
  platformDependent: readonly SettingPath[];
  /** Caveats about the result. */
  notices: readonly string[];
  before: string;
  after: string;
  /** As they are, with secrets covered: for people. */
  shown: { before: string; after: string };
}

interface CommentedChange extends Change {
  /** Comments that went with a setting that ended, or with entries that were taken away, as lines; secrets are covered. */
  comments?: readonly string[];
}

const FREEZE = 'experimental.containerEngine.webAssembly.enabled';
/** Anchors that are tried one by one. */
const MOST_ANCHORS = 16;

/**
 * Rewrites the text of a YAML or JSON document, bare settings or a profile, to the newest settings version: what does not change
 * keeps every character, settings that moved take their comments along, and comments of what is taken out go with it. The new
 * text is read again and compared with the migration of the old one before it is given out.
 * @param context for the system that the document is for: it decides what a few old values become.
 * @throws RdError `ERR_PROFILE_INVALID` with every finding, or when no text could be made that is proven.
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
  const after = await provenText(before, label, old, changes, settings, context);
  const cover = (text: string, document: ReadDocument) => covered(text, document, secretsOf(old));
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
    shown: { before: cover(before, old), after: cover(after.text, after.document) },
  };
}

/**
 * Aliases stay where the text without them would say the same. One whose anchor moved behind it, or changed, is written out.
 * @throws RdError `ERR_PROFILE_INVALID` when no way of writing is proven.
 */
async function provenText(
  text: string,
  label: string,
  old: ReadDocument,
  changes: readonly Change[],
  settings: JsonObject,
  context: CheckContext,
): Promise<Rewritten & { document: ReadDocument }> {
  const { value, shape } = old;
  const input = { value, at: shape.settingsPointer, version: Number(old.settings.version), platform: context.platform };
  for (const start of waysToWrite(text)) {
    const after = rewritten({ ...input, text: start, changes });
    const document = after && (await proven(after, text, old, settings, label, context));
    if (after && document) return { ...after, document };
  }
  throw new RdError('ERR_PROFILE_INVALID', `${label} could not be upgraded in its current form; nothing was written`, {
    details: changes.map(
      ({ from, to, reason }) => `${from}${to === undefined || to === from ? '' : ` → ${to}`}: ${reason}`,
    ),
    advice: 'Write the sections that these settings are in with one setting per line, and try again.',
  });
}

function* waysToWrite(text: string): Generator<string> {
  yield text;
  const anchors = aliasedAnchors(text);
  if (anchors.length > 1 && anchors.length <= MOST_ANCHORS)
    for (const each of anchors) yield withoutAliases(text, [each]);
  if (anchors.length > 0) yield withoutAliases(text, anchors);
}

/**
 * The document that the new text is, if it says what the migration of the old one says and has its comments, each once: all but
 * those of what was removed.
 */
async function proven(
  { text, dropped }: Rewritten,
  before: string,
  old: ReadDocument,
  settings: JsonObject,
  label: string,
  context: CheckContext,
): Promise<ReadDocument | undefined> {
  const document = await readDocument(text, label, context);
  if (document.findings.length > 0 || document.shape.form !== old.shape.form) return undefined;
  const said = Object.fromEntries(leaves(document.settings));
  const wanted = { ...Object.fromEntries(leaves(settings)), version: NEWEST };
  if (!equal(said, wanted)) return undefined;
  if (old.shape.form === 'profile' && !equal({ ...document.value, settings: {} }, { ...old.value, settings: {} })) {
    return undefined;
  }
  const comments = [...commentsIn(text), ...[...dropped.values()].flat()];
  return equal(comments.sort(), commentsIn(before).sort()) ? document : undefined;
}

/** What the application does to a locked profile of that version and a document does not say. */
function noticesOf({ shape }: ReadDocument, from: number, settings: JsonObject, label: string): string[] {
  const locked = shape.locked !== undefined && Object.keys(shape.locked).length > 0;
  const named = shape.form === 'settings' && /(^|[./\\])locked\.[^/\\]*$/.test(label);
  if (from > 10 || !(locked || named) || leafAt(settings, FREEZE) !== undefined) return [];
  return [
    `as a locked deployment profile, version ${from} also locked ${FREEZE} to false, which was newer than it; ` +
      `the upgraded document does not${locked ? '' : ' any more'}. To keep it, add it to the settings${locked ? ' and to locked' : ''}.`,
  ];
}

/** Secrets that are written in the document. */
function secretsOf({ settings }: ReadDocument): string[] {
  return FIELDS.flatMap(({ path, sensitive }) => {
    const value = sensitive ? leafAt(settings, path) : undefined;
    return typeof value === 'string' && value !== '' ? [value] : [];
  });
}

/** The text with its secrets masked: each value in its place, and repetitions elsewhere that are too long to be ordinary words. */
function covered(text: string, { parsed, settings, shape }: ReadDocument, secrets: readonly string[]): string {
  const lines = text.split('\n');
  const pieces = FIELDS.flatMap(({ path, sensitive }) => {
    const value = sensitive ? leafAt(settings, path) : undefined;
    const pointer = `${shape.settingsPointer}${pointerOf(path)}`;
    const [place, source] = [parsed.position(pointer), parsed.sourceText(pointer)];
    if (typeof value !== 'string' || value === '' || !place || source === undefined || source.startsWith('*'))
      return [];
    const offset = lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, place.column - 1);
    return [{ offset, length: source.length }];
  });
  return withoutSecrets(withoutPieces(text, pieces), secrets);
}

/** The names of the anchors that aliases of a document refer to. */
function aliasedAnchors(text: string): string[] {
  const names = new Set<string>();
  visit(parseYaml(text, { uniqueKeys: false, logLevel: 'silent' }), {
    Alias: (_key, alias) => {
      names.add(alias.source);
    },
  });
  return [...names];
}

/** The text with what they stand for in the place of the aliases of these anchors. */
function withoutAliases(text: string, anchors: readonly string[]): string {
  const document = parseYaml(text, { uniqueKeys: false, logLevel: 'silent' });
  const places: { from: number; to: number; written: string }[] = [];
  visit(document, {
    Alias: (_key, alias) => {
      const node = alias.resolve(document);
      if (!anchors.includes(alias.source) || !isNode(node) || !alias.range) return;
      const value: JsonValue = JSON.parse(JSON.stringify(node.toJS(document)));
      places.push({ from: alias.range[0], to: alias.range[1], written: flowText(value, '') });
    },
  });
  return places.reduceRight(
    (result, { from, to, written }) => result.slice(0, from) + written + result.slice(to),
    text,
  );
}

/** A document whose text is to be upgraded. */
interface ReadDocument {
  parsed: ParsedDocument;
  value: JsonObject;
  shape: Shape;
  /** As written: at their own version, references to secrets in their places. */
  settings: JsonObject;
  /** Everything that is wrong; what depends on the system or on other settings is not. */
  findings: Finding[];
}

/** Reads and checks a document as `rdctl validate` does, without looking up the secrets that it refers to. */
async function readDocument(source: string | Uint8Array, label: string, context: CheckContext): Promise<ReadDocument> {
  const parsed = parseDocument(source, label);
  const findings: Finding[] = [...parsed.findings];
  const shape = readShape(parsed, reporter(parsed, findings));
  const document = { parsed, value: asObject(parsed.value), shape, settings: {}, findings };
  if (!shape.settings) return document;
  const at = shape.settingsPointer;
  const checked = await checkSettings({ document: parsed, at, settings: withTexts(shape.settings) }, context);
  const wrong = checked.findings.filter(({ code }) => !dependsOnSystem(code));
  return {
    ...document,
    settings: shape.settings,
    findings: [...findings, ...wrong.map(({ code: _, ...finding }) => finding)],
  };
}

/** References to secrets are texts to everything but their reader. */
function withTexts(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const { path, sensitive } of FIELDS) {
    if (sensitive && secretSource(leafAt(copy, path)) !== undefined) setLeaf(copy, path, '');
  }
  return copy;
}

function asObject(value: JsonValue | undefined): JsonObject {
  return value !== undefined && isObject(value) ? value : {};
}

/** A piece of a text, in UTF-16 units. */
export interface Piece {
  offset: number;
  length: number;
}

const MASK = '********';
/** Secrets of at least this many characters are masked wherever they occur. */
const LONG_SECRET = 6;

/** The text with each piece masked. Pieces may come in any order but must not overlap. */
export function withoutPieces(text: string, pieces: readonly Piece[]): string {
  return [...pieces]
    .sort((a, b) => b.offset - a.offset)
    .reduce((result, { offset, length }) => `${result.slice(0, offset)}${MASK}${result.slice(offset + length)}`, text);
}

/** The text with repetitions of secrets masked, unless a secret is so short that it may be an ordinary word. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= LONG_SECRET)
    .reduce((result, secret) => result.replaceAll(secret, MASK), text);
}
