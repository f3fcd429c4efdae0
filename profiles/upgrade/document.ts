import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { type CheckContext, checkSettings, dependsOnTheComputer } from '../../src/settings/check.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import type { Finding } from '../../src/settings/finding.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import { copyOfObject } from '../../src/settings/own.ts';
import { type ParsedDocument, parseDocument } from '../../src/settings/parse.ts';
import { reporter } from '../report.ts';
import { readShape, type Shape } from '../shape.ts';

/** A document whose text is to be upgraded. */
export interface ReadDocument {
  parsed: ParsedDocument;
  value: JsonObject;
  shape: Shape;
  /** As written: at their own version, references to secrets in their places. */
  settings: JsonObject;
  /** Everything that is wrong; what depends on the system or on other settings is not. */
  findings: Finding[];
}

/** Reads and checks a document as `rdctl validate` does, without looking up the secrets that it refers to. */
export async function readDocument(
  source: string | Uint8Array,
  label: string,
  context: CheckContext,
): Promise<ReadDocument> {
  const parsed = parseDocument(source, label);
  const findings: Finding[] = [...parsed.findings];
  const shape = readShape(parsed, reporter(parsed, findings));
  const document = { parsed, value: asObject(parsed.value), shape, settings: {}, findings };
  if (!shape.settings) return document;
  const at = shape.settingsPointer;
  const checked = await checkSettings({ document: parsed, at, settings: withoutReferences(shape.settings) }, context);
  const wrong = checked.findings.filter(({ code }) => !dependsOnTheComputer(code));
  return {
    ...document,
    settings: shape.settings,
    findings: [...findings, ...wrong.map(({ code: _, ...finding }) => finding)],
  };
}

/** References to secrets are texts to everything but their reader. */
function withoutReferences(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const { path, sensitive } of FIELDS) {
    const value = sensitive ? leafAt(copy, path) : undefined;
    if (value === undefined || !isReference(value)) continue;
    const section = leafAt(copy, path.slice(0, path.lastIndexOf('.')));
    if (section !== undefined && isObject(section)) section[path.slice(path.lastIndexOf('.') + 1)] = '';
  }
  return copy;
}

function isReference(value: JsonValue): boolean {
  if (!isObject(value)) return false;
  const entries = Object.entries(value);
  const [name, where] = entries[0] ?? [];
  return entries.length === 1 && (name === 'fromEnv' || name === 'fromFile') && typeof where === 'string';
}

function asObject(value: JsonValue | undefined): JsonObject {
  return value !== undefined && isObject(value) ? value : {};
}
