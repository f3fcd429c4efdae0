import type { Locate } from '../../profiles/document/load.ts';
import { type ErrorCode, RdError, type SettingsFinding } from '../../src/errors.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { type Finding, formatFindings } from '../../src/settings/finding.ts';
import { pointerNames, pointerOf } from '../../src/settings/leaf-paths.ts';

/** Errors about the key of a setting; all others are about its value. */
const KEY_ERRORS: readonly ErrorCode[] = ['ERR_SETTING_LOCKED', 'ERR_SETTING_UNSUPPORTED'];

/** Reports a service's rejection at the line of the profile that requested it. Other errors pass through. */
export function errorWithPositions(error: unknown, locate: Locate | undefined): unknown {
  if (!(error instanceof RdError) || !locate) return error;
  const { code, advice } = error;
  const refused = error.findings.length > 0 ? error : fromText(error);
  if (!refused) return error;
  const part = KEY_ERRORS.includes(code) ? 'key' : 'value';
  const findings = refused.findings.map((finding) => placed(finding, locate, part));
  return new RdError(code, refused.message, {
    cause: error,
    details: formatFindings(findings),
    ...(advice === undefined ? {} : { advice }),
  });
}

function placed(finding: SettingsFinding, locate: Locate, part: 'key' | 'value'): Finding {
  return { ...finding, ...locate(pointerNames(finding.pointer), part) };
}

/** `PUT /v1/settings` replies with text: a heading, and lines that name a setting. */
function fromText({ code, message }: RdError): Pick<RdError, 'message' | 'findings'> | undefined {
  if (code !== 'ERR_SETTINGS_INVALID') return undefined;
  const [heading = '', ...lines] = message.split('\n');
  if (lines.length === 0) return undefined;
  return { message: heading, findings: lines.map((line) => ({ pointer: settingIn(line), message: line })) };
}

/** Pointer of the setting that a line names: the longest match, because some names are prefixes of others. */
function settingIn(line: string): string {
  const named = FIELDS.filter(({ path }) => line.includes(path)).map(({ path }) => path);
  return pointerOf(named.sort((a, b) => b.length - a.length)[0] ?? '');
}

/** ` (team.yaml:7:5)` for a change that a document requests; otherwise empty. */
export function placeSuffix({ path, key }: { path: string; key?: string }, locate: Locate | undefined): string {
  const place = locate?.([...path.split('.'), ...(key === undefined ? [] : [key])], 'key');
  return place ? ` (${place.file}:${place.line}:${place.column})` : '';
}
