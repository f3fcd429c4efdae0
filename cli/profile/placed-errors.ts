import type { Locate } from '../../profiles/document/load.ts';
import { type ErrorCode, RdError, type SettingsFinding } from '../../src/errors.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { type Finding, formatFindings } from '../../src/settings/finding.ts';
import { pointerNames, pointerOf } from '../../src/settings/leaf-paths.ts';

/** Refusals of a whole setting; all others are about the value that stands there. */
const OF_THE_KEY: readonly ErrorCode[] = ['ERR_SETTING_LOCKED', 'ERR_SETTING_UNSUPPORTED'];

/** What the service refused, told at the place in the user's documents that asked for it. Other errors pass as they are. */
export function withPlaces(error: unknown, locate: Locate | undefined): unknown {
  if (!(error instanceof RdError) || !locate) return error;
  const { code, advice } = error;
  const refused = error.findings.length > 0 ? error : fromText(error);
  if (!refused) return error;
  const part = OF_THE_KEY.includes(code) ? 'key' : 'value';
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

/** Answers to `PUT /v1/settings` are text: a heading, and lines that name the setting they are about. */
function fromText({ code, message }: RdError): Pick<RdError, 'message' | 'findings'> | undefined {
  if (code !== 'ERR_SETTINGS_INVALID') return undefined;
  const [heading = '', ...lines] = message.split('\n');
  if (lines.length === 0) return undefined;
  return { message: heading, findings: lines.map((line) => ({ pointer: settingIn(line), message: line })) };
}

/** Pointer of the setting that a line names: the longest name, because some begin like others. */
function settingIn(line: string): string {
  const named = FIELDS.filter(({ path }) => line.includes(path)).map(({ path }) => path);
  return pointerOf(named.sort((a, b) => b.length - a.length)[0] ?? '');
}

/** ` (team.yaml:7:5)` behind a change, where a document asks for it; else nothing. */
export function placeSuffix({ path, key }: { path: string; key?: string }, locate: Locate | undefined): string {
  const place = locate?.([...path.split('.'), ...(key === undefined ? [] : [key])], 'key');
  return place ? ` (${place.file}:${place.line}:${place.column})` : '';
}
