import { arch, release, totalmem } from 'node:os';
import {
  type AnyFile,
  compareSettings,
  loadAnyFile,
  type Side,
  settleSecrets,
} from '../../profiles/document/comparison.ts';
import { inTextOrder } from '../../profiles/document/report.ts';
import type { Shape } from '../../profiles/document/shape.ts';
import type { UnreadSecret } from '../../profiles/document/source.ts';
import { PARTS, type Part } from '../../profiles/formats/format.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import type { Host } from '../../src/settings/defaults.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { formatFindings } from '../../src/settings/finding.ts';
import { isLocked } from '../../src/settings/locks.ts';
import { equal } from '../../src/settings/own.ts';
import { FILE_FLAG } from '../arguments/file-flag.ts';
import { supportedPlatform, usage } from '../arguments/values.ts';
import { defineCommand, type Invocation } from '../command.ts';
import { desiredOf } from '../profile/desired.ts';
import { planFor } from '../profile/plan.ts';
import { checkDriver, DRIVER_FLAG } from '../session/driver-name.ts';
import { PLAN_TIMEOUT_FLAG } from '../session/patient-client.ts';
import { runningService } from '../session/service.ts';
import { OUTPUT_FLAG, viewFor } from '../views/choose.ts';
import { type SideLabel, showComparison } from '../views/comparison.ts';
import { plainText } from '../views/value.ts';

const LAYERS = 'two names are compared with each other; give layers with -f: -f a.yaml -f b.yaml';

export const diff = defineCommand({
  name: 'diff',
  summary: 'Show where the desktop differs from a profile',
  usage: '[-f FILE]... | FILE | A B',
  description: `Compares only what the profile mentions; different spellings of one value are equal.
With no service running it compares with the stored settings.
Differences that cannot be changed here (a lock, or the driver) are marked.
Layers are given with -f: the later ones win.

Two names without -f are compared with each other: files with settings of any format (YAML,
JSON, plist, mobileconfig, reg, registry.pol), or \`live\` for the settings in force. What only
one of them mentions is shown as absent in the other; against \`live\` only what the file
mentions counts.
Exit codes: 0 no difference; 2 there are differences; 3 a file is invalid or the target is not
ours; 1 failed.

  rdctl diff profile.yaml
  rdctl diff live locked.reg --part locked
  rdctl diff profile.yaml Locked.mobileconfig`,
  flags: {
    file: FILE_FLAG,
    ...PLAN_TIMEOUT_FLAG,
    driver: DRIVER_FLAG,
    output: OUTPUT_FLAG,
    part: { type: 'string', summary: 'Of A and B: compare what is locked, or the rest', values: PARTS },
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const [a, b, ...more] = args;
    if (a !== undefined && b !== undefined) {
      if (more.length > 0 || flags.file) throw usage(LAYERS);
      if (flags.timeout !== undefined) throw usage('--timeout is about the desktop, and two files are compared');
      if (flags.driver !== undefined) throw usage('--driver is about the desktop, and two files are compared');
      return compareTwo([a, b], { output: flags.output, part: PARTS.find((part) => part === flags.part) }, invocation);
    }
    if (flags.part !== undefined) throw usage('--part is for the comparison of two: rdctl diff A B --part locked');
    checkDriver(flags.driver, io.env);
    const view = viewFor(flags.output, io);
    const desired = await desiredOf([...(flags.file ?? []), ...args], io, view);
    const compared = await planFor(desired, await runningService(invocation), io, flags.driver, flags.timeout);
    view.diff(compared);
    return compared.changes.length > 0 ? 2 : 0;
  },
});

/** Names the settings in force in place of a file. */
const LIVE = 'live';

type Context = Pick<Invocation, 'connect' | 'globals' | 'io'>;

interface Read extends SideLabel, Side {
  unread: readonly UnreadSecret[];
  /** Profile keys other than settings and locks; absent for formats without them. */
  besides?: JsonObject;
}

/** Compares two files of any format, or one with the settings in force. Exit code 0: equal, 2: different. */
async function compareTwo(
  names: readonly [string, string],
  { output, part }: { output: string | undefined; part: Part | undefined },
  invocation: Context,
): Promise<number> {
  if (names[0] === '-' && names[1] === '-') throw usage('standard input can be read once, and - was given twice');
  if (names[0] === LIVE && names[1] === LIVE) throw usage('the live settings were named twice');
  const before = await read(names[0], part, invocation);
  const after = await read(names[1], part, invocation);
  const { a, b, notes } = settleSecrets(before, after);
  for (const note of notes) invocation.io.err(`${plainText(`Note: ${note}`)}\n`);
  const found = compareSettings({ ...before, settings: a }, { ...after, settings: b }, part);
  const besides = part ? [] : differingKeys(before.besides, after.besides);
  showComparison(invocation.io, output, [labelOf(before), labelOf(after)], { ...found, besides }, part);
  return found.values.length + found.locks.length === 0 ? 0 : 2;
}

function read(name: string, part: Part | undefined, invocation: Context): Promise<Read> {
  return name === LIVE ? readLive(invocation) : readFile(name, part, invocation);
}

async function readLive(invocation: Context): Promise<Read> {
  const { liveSettings } = await import('../session/live-settings.ts');
  const platform = supportedPlatform(invocation.io.platform);
  const host: Host = { platform, arch: arch(), osRelease: release(), memoryBytes: totalmem() };
  const live = await liveSettings(invocation, host);
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

async function readFile(name: string, part: Part | undefined, { io }: Context): Promise<Read> {
  const file = await loadAnyFile(name, {
    cwd: io.cwd,
    env: io.env,
    platform: supportedPlatform(io.platform),
    arch: arch(),
    osRelease: release(),
    readStdin: (limit) => io.readStdin(limit),
    ...(part === undefined ? {} : { part }),
  });
  // Document warnings are about applying it here, so they do not apply.
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

/** Unset keys take their default. */
function otherKeysOf({ state = 'unmanaged', prune = [], portForwards = [] }: Shape): JsonObject {
  return { state, prune: [...prune].sort(), portForwards: portForwards.map((each) => ({ ...each })) };
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
