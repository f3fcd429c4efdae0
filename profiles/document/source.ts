import { readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { messageOf, RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { systemCode } from '../../src/os/io-error.ts';
import { readRegular } from '../../src/os/regular-file.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import type { Finding } from '../../src/settings/issue.ts';
import { COMMENTS, jsonProblem } from '../../src/settings/json-problem.ts';
import { type ParsedDocument, parseDocument } from '../../src/settings/parse.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import { isUtf16, looksLikeJson, SIZE_LIMIT, tooLong } from '../../src/settings/source-text.ts';
import { decodeText } from '../formats/format.ts';
import { otherProduct, parseJsonText } from '../formats/json.ts';
import { child, type Report } from './report.ts';

/** The input of reading a source. */
export interface SourceContext {
  cwd: string;
  /** Reads at most `limit + 1` bytes. */
  readStdin(limit: number): Promise<Uint8Array>;
}

export interface Source {
  /** Name as given: a path, or `-`. */
  name: string;
  /** Name for messages: the path as given, or `<stdin>`. */
  label: string;
  /** Absolute path; absent for standard input. */
  path?: string;
  /** The bytes, at most one more than is accepted, which is enough to refuse it. */
  bytes: Uint8Array;
  /** Size of the whole file in bytes. */
  size: number;
}

/** Reads one source, at most `limit + 1` bytes of it. Throws `ERR_IO` with the system's reason when it cannot be read. */
export async function readSource(name: string, context: SourceContext, limit = SIZE_LIMIT): Promise<Source> {
  if (name === '-') {
    const bytes = await context.readStdin(limit);
    return { name, label: '<stdin>', bytes, size: bytes.length };
  }
  const path = resolve(context.cwd, name);
  return { name, label: name, path, ...(await readBounded(path, name, limit)) };
}

/** Returns a document with the finding that the file is too large; undefined if it is not. */
function oversizeError({ bytes, size, label }: Source): ParsedDocument | undefined {
  if (size <= SIZE_LIMIT) return undefined;
  const message = `the document ${tooLong(size, SIZE_LIMIT)}`;
  const finding = { file: label, line: 1, column: 1, pointer: '', message };
  return { ...parseDocument(bytes, label), value: undefined, findings: [finding] };
}

/** Decides whether a source is read as JSON; all others are YAML, including its flow style. */
export const READ_AS_JSON = {
  /** Files named `.json`. */
  named: ({ label }: Source) => /\.json$/i.test(label),
  /** Files named `.json`, and text in braces that is not named as YAML: the input of the compatible tool. */
  input: (source: Source, text: string) =>
    READ_AS_JSON.named(source) || (looksLikeJson(text) && !/\.ya?ml$/i.test(source.label)),
  /** Files named `.json` with text in braces: only for these can it be said who would not read them. */
  both: (source: Source, text: string) => READ_AS_JSON.named(source) && looksLikeJson(text),
} as const;

/** Parses the document of a source. Adds a finding if it is too large, another product's, or YAML where JSON is expected. */
export function parseSource(
  source: Source,
  isJson: (source: Source, text: string) => boolean = READ_AS_JSON.named,
): ParsedDocument {
  const large = oversizeError(source);
  if (large) return large;
  const { bytes, label } = source;
  const document = parseDocument(bytes, label);
  const refuse = (finding: Finding): ParsedDocument => ({ ...document, value: undefined, findings: [finding] });
  const product = otherProduct(document.value);
  if (product !== undefined) return refuse({ file: label, line: 1, column: 1, pointer: '', message: product });
  const text = isUtf16(bytes) ? undefined : decodeText(bytes);
  if (text === undefined || !isJson(source, text) || parseJsonText(text) !== undefined) return document;
  const problem = jsonProblem(text);
  // Located for a comment in JSON; any other problem of YAML has a finding already.
  if (!problem || (document.findings.length > 0 && problem.message !== COMMENTS)) return document;
  return refuse({ file: label, pointer: '', ...problem });
}

async function readBounded(path: string, name: string, limit: number): Promise<Pick<Source, 'bytes' | 'size'>> {
  try {
    const facts = statSync(path);
    // Read synchronously: starting the thread pool takes longer. Files of another kind, or empty ones of the system, may have to be waited for.
    if (facts.isFile() && facts.size > 0 && facts.size <= limit) {
      const bytes = readFileSync(path);
      return { bytes: bytes.subarray(0, limit + 1), size: bytes.length };
    }
    const file = await open(path, 'r');
    try {
      const stat = await file.stat();
      if (stat.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
      // Pipes and devices have no size, and a file may grow while it is read.
      let buffer = Buffer.alloc(Math.min(limit, stat.size) + 1);
      let length = 0;
      for (;;) {
        if (length === buffer.length) {
          if (length > limit) break;
          buffer = Buffer.concat([buffer], limit + 1);
        }
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return { bytes: buffer.subarray(0, length), size: Math.max(length, stat.size) };
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw new RdError('ERR_IO', `${name} could not be read: ${reason(cause)}`, {
      cause,
      advice: 'Specify a readable file, or - for standard input.',
    });
  }
}

function reason(cause: unknown): string {
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  if (code === 'ENOENT') return 'no such file or directory';
  if (code === 'EISDIR') return 'it is a directory';
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied';
  return messageOf(cause);
}

/** Origin of a secret value of the document. */
export type SecretOrigin = { env: string } | { file: string } | { literal: true };

/** A secret that could not be read. */
export interface UnreadSecret {
  path: SettingPath;
  /** Source of the secret, such as `{ fromEnv: NAME }`. */
  reference: JsonObject;
  /** Reason as a clause: `the environment variable NAME is not set`. */
  reason: string;
}

export interface SecretsContext {
  /** Called for a secret that cannot be read; without it, such a secret is a finding. */
  onUnread?(secret: UnreadSecret): void;
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
}

/** Settings with secret references replaced by values, and the origin of each by setting path. */
interface ResolvedSecrets {
  settings: JsonObject;
  origins: Record<string, SecretOrigin>;
  warnings: string[];
}

const SENSITIVE: readonly SettingPath[] = FIELDS.filter((field) => field.sensitive).map((field) => field.path);

function isSensitive(path: string): boolean {
  return SENSITIVE.some((each) => each === path);
}

/**
 * Replaces `{ fromEnv: NAME }` and `{ fromFile: PATH }`. A relative path starts at the document's directory. One line end at
 * the end of the file is not part of the secret. An unresolved reference is a finding, and its setting is left out.
 */
export async function resolveSecrets(
  settings: JsonObject,
  at: string,
  source: Source,
  context: SecretsContext,
  report: Report,
): Promise<ResolvedSecrets> {
  const origins: Record<string, SecretOrigin> = {};
  const warnings: string[] = [];

  async function walk(value: JsonObject, prefix: string, pointer: string): Promise<JsonObject> {
    const result: JsonObject = {};
    for (const [key, inner] of Object.entries(value)) {
      const path = prefix === '' ? key : `${prefix}.${key}`;
      const here = child(pointer, key);
      if (isReference(inner)) {
        const secret = isSensitive(path) ? await resolveOne(inner, path, here) : refuse(path, here);
        if (secret !== undefined) result[key] = secret;
      } else if (isObject(inner)) {
        result[key] = await walk(inner, path, here);
      } else {
        if (isSensitive(path) && typeof inner === 'string' && inner !== '') {
          origins[path] = { literal: true };
          warnings.push(
            `${source.label}: ${path} is written in plain text; use { fromEnv: NAME } or { fromFile: PATH }`,
          );
        }
        result[key] = inner;
      }
    }
    return result;
  }

  function refuse(path: string, pointer: string): undefined {
    report(pointer, `fromEnv and fromFile are for secrets, and ${path} is not one`, {
      expected: `a plain value; secrets are ${SENSITIVE.join(', ')}`,
    });
    return undefined;
  }

  async function resolveOne(reference: JsonObject, path: string, pointer: string): Promise<string | undefined> {
    const { fromEnv, fromFile } = reference;
    if (Object.keys(reference).length > 1 || typeof (fromEnv ?? fromFile) !== 'string') {
      report(pointer, 'a secret has exactly one source', { expected: '{ fromEnv: NAME } or { fromFile: PATH }' });
    } else if (typeof fromEnv === 'string') {
      const found = context.env[fromEnv];
      origins[path] = { env: fromEnv };
      if (found !== undefined) return found;
      missing(path, reference, child(pointer, 'fromEnv'), `the environment variable ${fromEnv} is not set`);
    } else if (typeof fromFile === 'string') {
      const file = resolve(source.path ? dirname(source.path) : context.cwd, fromFile);
      origins[path] = { file };
      try {
        const bytes = await readRegular(file, { follow: true, limit: SIZE_LIMIT });
        return bytes.toString('utf8').replace(/\r?\n$/, '');
      } catch (cause) {
        const reason = cause instanceof RdError ? cause.message : (systemCode(cause) ?? messageOf(cause));
        const message = `the secret file ${file} could not be read (${reason})`;
        missing(path, reference, child(pointer, 'fromFile'), message);
      }
    }
    return undefined;
  }

  function missing(name: string, reference: JsonObject, pointer: string, reason: string): void {
    const path = SENSITIVE.find((each) => each === name);
    if (context.onUnread && path) context.onUnread({ path, reference, reason });
    else report(pointer, reason);
  }

  return { settings: await walk(settings, '', at), origins, warnings };
}

/** True for `{ fromEnv: … }` and `{ fromFile: … }`, valid or not. */
export function isReference(value: JsonValue): value is JsonObject {
  return isObject(value) && ('fromEnv' in value || 'fromFile' in value);
}
