import {
  type AnyFile,
  type Comparison,
  compareSettings,
  loadAnyFile,
  type Side,
  settleSecrets,
  type ValueDifference,
} from '../../profiles/document/comparison.ts';
import { inTextOrder } from '../../profiles/document/report.ts';
import type { Shape } from '../../profiles/document/shape.ts';
import type { UnreadSecret } from '../../profiles/document/source.ts';
import { PARTS, type Part } from '../../profiles/formats/format.ts';
import { checkDriver } from '../../src/client/session/driver.ts';
import { runningService } from '../../src/client/session/find.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import { defined, type JsonObject, type JsonValue } from '../../src/json.ts';
import { BLOCK_NAMES } from '../../src/settings/blocks.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { formatFindings } from '../../src/settings/issue.ts';
import { isLocked } from '../../src/settings/locks.ts';
import { equal } from '../../src/settings/own.ts';
import { wordList } from '../../src/settings/printable.ts';
import { documentContext, hostOf, policiesOf } from '../arguments/environment.ts';
import { desiredOf, FILE_FLAG } from '../arguments/profile-files.ts';
import { DRIVER_FLAG, PLAN_TIMEOUT_FLAG } from '../arguments/shared-flags.ts';
import { usage } from '../arguments/values.ts';
import { type Caller, defineCommand, type Io } from '../command.ts';
import { differenceText, entryLines } from '../views/difference-text.ts';
import { count, jsonText, pathText, plainText, type Style, style } from '../views/text.ts';
import { OUTPUT_FLAG, viewFor } from '../views/view.ts';
import { managedHistory } from './plan/managers.ts';
import { planFor } from './plan/plan-for.ts';

const LAYERS = 'two files are compared with each other; specify layers with -f: -f a.yaml -f b.yaml';

export const diff = defineCommand({
  name: 'diff',
  summary: 'Show where the desktop differs from a profile',
  usage: '[-f FILE]... | FILE | A B',
  description: `Compares only settings in the profile; different spellings of a value are equal.
If no service is running, the stored settings are compared. Each difference says what set the live value, if the history knows it.
Differences that cannot be changed here (locked, or not supported by the driver) are marked.
Specify layers with -f; later files override earlier ones.

Two arguments without -f are compared with each other: settings files of any format (YAML,
JSON, plist, mobileconfig, reg, registry.pol), or \`live\` for the current settings. A setting
in only one of them is shown as absent in the other; with \`live\`, only settings in the
file are compared.
Exit codes: 0 no differences; 2 differences; 3 a file is invalid, or the target is not the
intended one; 1 failure.

  rdctl diff profile.yaml
  rdctl diff live locked.reg --part locked
  rdctl diff profile.yaml Locked.mobileconfig`,
  flags: {
    file: FILE_FLAG,
    ...PLAN_TIMEOUT_FLAG,
    driver: DRIVER_FLAG,
    output: OUTPUT_FLAG,
    part: { type: 'string', summary: 'Compare only the locked settings of A and B, or only the others', values: PARTS },
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const [a, b, ...more] = args;
    if (a !== undefined && b !== undefined) {
      if (more.length > 0 || flags.file) throw usage(LAYERS);
      if (flags.timeout !== undefined) throw usage('--timeout cannot be used when comparing two files');
      if (flags.driver !== undefined) throw usage('--driver cannot be used when comparing two files');
      return compareTwo([a, b], { output: flags.output, part: PARTS.find((part) => part === flags.part) }, invocation);
    }
    if (flags.part !== undefined) throw usage('--part requires two files: rdctl diff A B --part locked');
    checkDriver(flags.driver, io.env);
    const view = viewFor(flags.output, io);
    const desired = await desiredOf([...(flags.file ?? []), ...args], io, view);
    const { plan: compared } = await planFor(desired, await runningService(invocation), io, flags);
    const { managers } = compared.changes.length === 0 ? NOTHING : await managedHistory(compared.target, homeOf(io));
    view.diff(compared, managers);
    return compared.changes.length > 0 ? 2 : 0;
  },
});

const NOTHING = { managers: [] };

/** Argument for the settings in force, instead of a file. */
const LIVE = 'live';

interface Read extends SideLabel, Side {
  unread: readonly UnreadSecret[];
  /** Profile keys other than settings and locks; absent for formats without them. */
  besides?: JsonObject;
}

/** Compares two files of any format, or one with the settings in force. Exit code 0: equal, 2: different. */
async function compareTwo(
  names: readonly [string, string],
  { output, part }: { output: string | undefined; part: Part | undefined },
  invocation: Caller,
): Promise<number> {
  if (names[0] === '-' && names[1] === '-') throw usage('standard input (-) can be specified only once');
  if (names[0] === LIVE && names[1] === LIVE) throw usage('live can be specified only once');
  const before = await read(names[0], part, invocation);
  const after = await read(names[1], part, invocation);
  const { a, b, notes } = settleSecrets(before, after);
  for (const note of notes) invocation.io.err(`${plainText(`Note: ${note}`)}\n`);
  const found = compareSettings({ ...before, settings: a }, { ...after, settings: b }, part);
  const besides = part ? [] : differingKeys(before.besides, after.besides);
  showComparison(invocation.io, output, [labelOf(before), labelOf(after)], { ...found, besides }, part);
  return found.values.length + found.locks.length === 0 ? 0 : 2;
}

function read(name: string, part: Part | undefined, invocation: Caller): Promise<Read> {
  return name === LIVE ? readLive(invocation) : readFile(name, part, invocation);
}

async function readLive(invocation: Caller): Promise<Read> {
  const { liveSettings } = await import('../../src/client/live-settings.ts');
  const host = hostOf(invocation.io);
  const live = await liveSettings(invocation, host, () => policiesOf(invocation.io, host));
  const record = await live.locked();
  return {
    label: LIVE,
    kind: live.origin,
    settings: live.settings,
    locked: FIELDS.filter(({ path }) => isLocked(record, path)).map(({ path }) => path),
    whole: true,
    locks: true,
    unread: [],
  };
}

async function readFile(name: string, part: Part | undefined, { io }: Caller): Promise<Read> {
  const file = await loadAnyFile(name, {
    ...documentContext(io),
    ...defined({ part }),
  });
  // Warnings of a document concern applying it here, so only those of deployment profiles are shown.
  if (file.form === 'deployment') for (const warning of file.warnings) io.err(`Warning: ${plainText(warning)}\n`);
  const n = file.findings.length;
  if (n > 0) {
    throw new RdError(
      'ERR_PROFILE_INVALID',
      `${n} error${n === 1 ? '' : 's'} in ${file.label}; nothing was compared.`,
      {
        details: formatFindings(inTextOrder(file.findings)),
      },
    );
  }
  const { settings, locked } = file.joined;
  const locks = file.form === 'deployment' || file.document?.shape.locked !== undefined;
  return {
    label: file.label,
    kind: kindOf(file),
    settings,
    locked,
    whole: false,
    unread: file.unread,
    locks: locks || file.parts.some((each) => each.part),
    ...(file.document?.shape.form === 'profile' ? { besides: otherKeysOf(file.document.shape) } : {}),
  };
}

/** Returns the other keys of a document. Unset ones take their default. */
function otherKeysOf({ state = 'unmanaged', prune = [], blocks = {}, portForwards = [] }: Shape): JsonObject {
  const all = Object.fromEntries(BLOCK_NAMES.map((name) => [name, blocks[name] ?? {}]));
  return { state, prune: [...prune].sort(), ...all, portForwards: portForwards.map((each) => ({ ...each })) };
}

function differingKeys(before: JsonObject | undefined, after: JsonObject | undefined): string[] {
  if (!before || !after) return [];
  return Object.keys(before).filter((key) => !equal(before[key], after[key]));
}

function kindOf({ form, format, parts }: AnyFile): string {
  const versions = [...new Set(parts.map(({ settings }) => settings.version))].filter(
    (each) => typeof each === 'number',
  );
  const what = form === 'deployment' ? `${format} deployment file` : form === 'profile' ? 'profile' : 'settings';
  return versions.length === 0 ? what : `${what}, version ${versions.join(' and ')}`;
}

function labelOf({ label, kind }: Read): SideLabel {
  return { label, kind };
}

/** A side of the comparison, as shown in the header. */
interface SideLabel {
  label: string;
  /** Kind of the file: `profile, version 14`, `reg`. */
  kind: string;
}

interface ShownComparison extends Comparison {
  /** Differing keys of two profiles that are neither settings nor locks, such as `state`. */
  besides: readonly string[];
}

/** Shows the differences: text, or JSON with a stable shape. */
function showComparison(
  io: Io,
  output: string | undefined,
  sides: readonly [SideLabel, SideLabel],
  found: ShownComparison,
  part?: string,
): void {
  if (output !== 'json') {
    io.say(comparisonText(sides, found, style(io.color)));
    return;
  }
  const [before, after] = sides;
  const document = {
    kind: 'Comparison',
    formatVersion: 1,
    before,
    after,
    ...defined({ part }),
    differences: found.values.map(({ path, key, sensitive, before: old, after: now }) => ({
      path,
      ...defined({ key }),
      ...(old === undefined ? {} : { before: maskValue(old, sensitive) }),
      ...(now === undefined ? {} : { after: maskValue(now, sensitive) }),
    })),
    locks: found.locks,
    besides: found.besides,
  };
  io.out(jsonText(document));
}

function comparisonText(
  [a, b]: readonly [SideLabel, SideLabel],
  { values, locks, besides }: ShownComparison,
  paint: Style,
): string {
  const head = [`--- ${plainText(a.label)} (${a.kind})`, `+++ ${plainText(b.label)} (${b.kind})`]
    .map(paint.bold)
    .join('\n');
  const lines = [
    ...values.flatMap((each) => {
      const { brief, entries } = differenceText(side(each, 'before'), side(each, 'after'), ['(absent)', '(absent)']);
      return [`  ${pathText(each)}: ${brief}`, ...entryLines(entries)];
    }),
    ...locks.map(({ path, before }) => `  ${path}: ${before ? 'locked → not locked' : 'not locked → locked'}`),
  ];
  return [
    head,
    '',
    ...(lines.length === 0 ? [] : [...lines, '']),
    ending(values.length + locks.length, besides),
    '',
  ].join('\n');
}

function ending(differences: number, besides: readonly string[]): string {
  if (besides.length === 0) return differences === 0 ? 'No differences.' : count(differences, 'difference');
  const found = differences === 0 ? 'No differences in' : `${count(differences, 'difference')} of`;
  return `${found} settings and locks; ${wordList(besides)} ${besides.length === 1 ? 'differs' : 'differ'}, which is not compared.`;
}

function side({ sensitive, ...values }: ValueDifference, which: 'before' | 'after') {
  const value = values[which];
  return value === undefined ? undefined : maskValue(value, sensitive);
}

function maskValue(value: JsonValue, sensitive: boolean): JsonValue | { sensitive: true } {
  return sensitive ? { sensitive: true } : value;
}
