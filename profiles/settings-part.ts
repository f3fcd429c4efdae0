import type { JsonObject } from '../src/json.ts';
import { type CheckFinding, checkSettings, dependsOnTheComputer } from '../src/settings/check.ts';
import type { Platform } from '../src/settings/field.ts';
import { type Finding, formatFinding } from '../src/settings/finding.ts';
import { type ParsedDocument, parseDocument } from '../src/settings/parse.ts';
import { reporter } from './report.ts';
import { resolveSecrets, type SecretOrigin, type SecretsContext } from './secrets.ts';
import { readShape, type Shape } from './shape.ts';
import { oversized, type Source } from './source.ts';

/** The host that settings are judged for. */
export interface HostFacts {
  platform: Platform;
  /** `process.arch`. */
  arch: string;
  osRelease?: string;
  /** Product version of macOS. */
  osVersion?: string;
}

/** One document, read and checked on its own. */
export interface Part {
  source: Source;
  parsed: ParsedDocument;
  shape: Shape;
  /** At their own version as they were written, secrets resolved. */
  written: JsonObject;
  /** At the newest version, canonical, secrets resolved. */
  settings: JsonObject;
  /** Where settings that a migration moved were written, by dotted path. */
  origins: ReadonlyMap<string, string>;
  secrets: Record<string, SecretOrigin>;
  findings: Finding[];
  warnings: string[];
}

/** Reads one document: parse, both forms, secrets, and the strict check of the settings. */
export async function readPart(source: Source, context: HostFacts & SecretsContext): Promise<Part> {
  const parsed = oversized(source) ?? parseDocument(source.bytes, source.label);
  const findings: Finding[] = [...parsed.findings];
  const report = reporter(parsed, findings);
  const shape = readShape(parsed, report);
  const part: Part = {
    source,
    parsed,
    shape,
    written: {},
    settings: {},
    origins: new Map(),
    secrets: {},
    findings,
    warnings: [],
  };
  if (!shape.settings) return part;
  const at = shape.settingsPointer;
  const resolved = await resolveSecrets(shape.settings, at, source, context, report);
  const checked = await checkSettings({ document: parsed, at, settings: resolved.settings }, context);
  // The plan has the last word.
  const uncertain = checked.findings.filter(({ code }) => dependsOnTheComputer(code));
  const wrong = checked.findings.filter((finding) => !uncertain.includes(finding));
  return {
    ...part,
    written: resolved.settings,
    settings: checked.settings,
    origins: checked.origins,
    secrets: resolved.origins,
    findings: [...findings, ...wrong.map(({ code: _, ...finding }) => finding)],
    warnings: [...resolved.warnings, ...uncertain.map(warning)],
  };
}

function warning({ code: _, ...finding }: CheckFinding): string {
  return formatFinding({
    ...finding,
    message: `${finding.message}. This holds unless the live settings differ from the defaults.`,
  });
}
