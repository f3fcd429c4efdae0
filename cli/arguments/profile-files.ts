import { type DesiredDocument, type LoadedDocument, type Locate, loadDesired } from '../../profiles/document/load.ts';
import { type ErrorCode, RdError, type SettingsFinding } from '../../src/errors.ts';
import { defined } from '../../src/json.ts';
import { systemCode } from '../../src/os/io-error.ts';
import type { PlanRequest, WantedForwards } from '../../src/plan/change.ts';
import { withForwards } from '../../src/plan/port-forwards.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { type Finding, formatFindings } from '../../src/settings/issue.ts';
import { pointerNames, pointerOf } from '../../src/settings/leaf-paths.ts';
import type { Io } from '../command.ts';
import type { View } from '../views/view.ts';
import { documentContext } from './environment.ts';
import { closestTo, exampleNamed, exampleOffered } from './example-files.ts';

/**
 * Loads the `-f` sources of a command. A name without a file here may be that of an example. Throws `ERR_USAGE` without any source and `ERR_IO` for
 * one that cannot be read.
 */
export async function loadFiles(files: readonly string[] | undefined, io: Io): Promise<LoadedDocument> {
  if (files === undefined || files.length === 0) {
    throw new RdError('ERR_USAGE', 'no profile specified', {
      advice: 'Specify one with -f FILE, or -f - for standard input.',
    });
  }
  return loadDesired(
    files.map((name) => withExample(name, io)),
    documentContext(io),
  ).catch((error: unknown) => {
    throw withOffer(error, files, io);
  });
}

function withExample(name: string, io: Io): string {
  const example = exampleNamed(name, io);
  if (example === undefined) return name;
  io.err(`notice: ${name} is an example, read from ${example}\n`);
  return example;
}

/** Adds to the error for a missing file that there is an example of that name, or which file may be meant. */
function withOffer(error: unknown, files: readonly string[], io: Io): unknown {
  if (!(error instanceof RdError) || systemCode(error.cause) !== 'ENOENT') return error;
  const [name] = files.filter((each) => error.message.startsWith(`${each} `));
  const advice = name === undefined ? undefined : adviceFor(name, io);
  return advice === undefined ? error : new RdError(error.code, error.message, { cause: error.cause, advice });
}

/** Returns a suggestion for a name without a file. */
export function adviceFor(name: string, io: Io): string | undefined {
  const example = exampleOffered(name, io);
  if (example !== undefined) return `There is an example: -f ${example}`;
  const close = closestTo(name, io);
  return close === undefined ? undefined : `Did you mean ${close}?`;
}

/** Returns the port forwards of the documents, for plan and apply. */
export function forwardsOf({
  portForwards,
  prunePortForwards,
}: Pick<DesiredDocument, 'portForwards' | 'prunePortForwards'>): WantedForwards {
  return { entries: portForwards, exclusive: prunePortForwards };
}

/** Returns the request to plan and apply. */
export function requestOf(
  desired: Pick<DesiredDocument, 'request' | 'portForwards' | 'prunePortForwards'>,
): PlanRequest {
  return withForwards(desired.request, forwardsOf(desired));
}

/** Reads the desired state from the `-f` files. Shows warnings; throws `ERR_PROFILE_INVALID` with every finding. */
export async function desiredOf(files: readonly string[] | undefined, io: Io, view: View): Promise<DesiredDocument> {
  const { desired, findings, warnings, documents } = await loadFiles(files, io);
  view.warnings(warnings);
  if (desired) return desired;
  const n = findings.length;
  const labels = documents.map(({ file }) => file).join(', ');
  throw new RdError('ERR_PROFILE_INVALID', `${n} error${n === 1 ? '' : 's'} in ${labels}; nothing was sent.`, {
    details: formatFindings(findings),
  });
}

/** Errors about the key of a setting; all others are about its value. */
const KEY_ERRORS: readonly ErrorCode[] = ['ERR_SETTING_LOCKED', 'ERR_SETTING_UNSUPPORTED'];

/** Reports a service's rejection at the line of the profile that requested it. Other errors pass through. */
export function errorWithPositions(error: unknown, locate: Locate | undefined): unknown {
  if (!(error instanceof RdError) || !locate) return error;
  const { code, advice } = error;
  const refused = error.findings.length > 0 ? error : fromText(error);
  if (!refused) return error;
  const part = KEY_ERRORS.includes(code) ? 'key' : 'value';
  const findings = refused.findings.map((finding) => locateFinding(finding, locate, part));
  return new RdError(code, refused.message, {
    cause: error,
    details: formatFindings(findings),
    ...defined({ advice }),
  });
}

function locateFinding(finding: SettingsFinding, locate: Locate, part: 'key' | 'value'): Finding {
  return { ...finding, ...locate(pointerNames(finding.pointer), part) };
}

/** Parses the text of a rejected `PUT /v1/settings`: a heading, and lines that name a setting. */
function fromText({ code, message }: RdError): Pick<RdError, 'message' | 'findings'> | undefined {
  if (code !== 'ERR_SETTINGS_INVALID') return undefined;
  const [heading = '', ...lines] = message.split('\n');
  if (lines.length === 0) return undefined;
  return { message: heading, findings: lines.map((line) => ({ pointer: settingIn(line), message: line })) };
}

/** Returns the pointer of the setting that a line names: the longest match, because some names are prefixes of others. */
function settingIn(line: string): string {
  const named = FIELDS.filter(({ path }) => line.includes(path)).map(({ path }) => path);
  return pointerOf(named.sort((a, b) => b.length - a.length)[0] ?? '');
}

/** The flag `-f` of every command that reads desired-state files. */
export const FILE_FLAG = {
  type: 'strings',
  short: 'f',
  summary: 'Profile or settings file, or - for standard input; later files override earlier ones',
  placeholder: 'FILE',
} as const;
