import { ALL, type CheckSelection, checkProfile } from '../../../profiles/check/check.ts';
import { type CheckCell, type CheckFinding, spread, verdictOf } from '../../../profiles/check/finding.ts';
import { type CheckInput, checkInput, lossFindings, reachNotices } from '../../../profiles/check/input.ts';
import { readSource } from '../../../profiles/document/source.ts';
import { PARTS, type Part, PROFILE_LIMIT } from '../../../profiles/formats/format.ts';
import { RdError } from '../../../src/errors.ts';
import { PLATFORM_NAMES } from '../../../src/settings/field.ts';
import { RELEASES, releaseIndex } from '../../../src/settings/releases.ts';
import { platformOf, quote, usage, wordOf } from '../../arguments/values.ts';
import { defineCommand, type Io } from '../../command.ts';
import { checkText } from '../../views/profile-check-text.ts';
import { plainText, style } from '../../views/text.ts';
import { OUTPUT_FLAG } from '../../views/view.ts';

export const profileCheck = defineCommand({
  name: 'profile check',
  summary: 'Show which releases would accept a deployment profile',
  usage: 'FILE...',
  description: `For each release of Rancher Desktop from ${RELEASES[0]?.name} to ${RELEASES.at(-1)?.name}, on macOS, Linux and
Windows, shows whether it would start with this deployment profile, what it would ignore, and why.
FILE is a deployment file of any format (.plist, .mobileconfig, .reg, Registry.pol,
locked.json), bare settings, or a profile, which is checked as the two parts that create-profile would
write. - is standard input. A deployment file is checked on the
platform that reads its format, everything else on all three, unless --platform is given.
Exit codes: 0 nothing is refused; 3 something is refused, or --strict and
something is ignored or changed; 1 failure.

  rdctl profile check locked.reg
  rdctl profile check team.yaml --release 1.20 --release 1.24 --platform windows`,
  flags: {
    output: OUTPUT_FLAG,
    part: {
      type: 'string',
      summary: 'Part of files whose name does not indicate it (default locked)',
      values: PARTS,
    },
    platform: {
      type: 'strings',
      summary: 'Check only this platform, even if it does not read the format; repeatable',
      offers: ['macos', 'linux', 'windows'],
      placeholder: 'NAME',
    },
    release: {
      type: 'strings',
      summary: 'Check only this release; repeatable',
      offers: RELEASES.map(({ name }) => name),
      placeholder: 'VERSION',
    },
    strict: { type: 'boolean', summary: 'Also exit with 3 if anything is ignored or changed' },
  },
  classic: false,
  async run({ flags, args, io }) {
    if (args.length === 0) {
      throw usage('no file specified', 'Specify one or more files, or - for standard input.');
    }
    if (args.filter((name) => name === '-').length > 1) {
      throw usage('standard input (-) can be specified only once');
    }
    const selection = selectionOf(flags.release ?? [], flags.platform ?? []);
    const part = PARTS.find((name) => name === flags.part);
    const files = await checkFiles(args, { part, selection, io });
    const accepted = isAccepted(files, flags.strict ?? false);
    for (const file of files) {
      for (const notice of 'input' in file ? file.input.notices : []) io.err(`${plainText(`Note: ${notice}`)}\n`);
    }
    if (flags.output === 'json') {
      io.out(checkReport(files, accepted));
      return accepted ? 0 : 3;
    }
    const texts = files.map((file) => {
      if ('cells' in file) return checkText(file.label, file.cells, file.input.place, style(io.color), io.columns);
      const { message, details } = file.problem;
      return `${plainText(`${file.label}: not checked: ${message}`)}\n${details.map((line) => `  ${plainText(line)}\n`).join('')}`;
    });
    io.out(texts.join('\n'));
    return accepted ? 0 : 3;
  },
});

/** A file and its check result. */
type CheckedFile = { label: string } & (
  | { input: CheckInput; cells: readonly CheckCell[] }
  /** The error of a file that could not be parsed. */
  | { problem: RdError }
);

/** The selection of `--release` and `--platform`; without `--platform`, each file's own platforms. */
interface WantedCells {
  releases: CheckSelection['releases'];
  platforms?: CheckSelection['platforms'];
}

/** Returns the selected releases and platforms. @throws RdError `ERR_USAGE` for an unknown release. */
function selectionOf(releases: readonly string[], platforms: readonly string[]): WantedCells {
  const wanted = new Set(releases.map(releaseName));
  const systems = new Set(platforms.map(platformOf));
  return {
    releases: releases.length === 0 ? ALL.releases : RELEASES.filter(({ name }) => wanted.has(name)),
    ...(platforms.length === 0 ? {} : { platforms: ALL.platforms.filter((platform) => systems.has(platform)) }),
  };
}

/** Returns the name of a release: `1.20`, also for `v1.20.1`. */
function releaseName(text: string): string {
  const name = /^v?(\d+\.\d+)(?:\.\d+)?$/.exec(text)?.[1];
  const known = RELEASES.find((release) => release.name === name);
  if (known) return known.name;
  const names = RELEASES.map((release) => release.name);
  throw usage(`--release ${quote(text)}: must be from ${names[0]} to ${names.at(-1)}`);
}

/** Checks each file separately. Throws `ERR_IO` for an unreadable file; problems in a file are part of its result. */
async function checkFiles(
  names: readonly string[],
  { part, selection, io }: { part: Part | undefined; selection: WantedCells; io: Io },
): Promise<CheckedFile[]> {
  const checked: CheckedFile[] = [];
  for (const name of names) {
    const source = await readSource(name, { cwd: io.cwd, readStdin: (limit) => io.readStdin(limit) }, PROFILE_LIMIT);
    const { label } = source;
    try {
      const input = await checkInput(source, part);
      const cells = withLosses(input, checkProfile(input.parts, { platforms: input.platforms, ...selection }));
      const extraPlatforms = (selection.platforms ?? []).filter((platform) => !input.platforms.includes(platform));
      const notices = [
        ...input.notices,
        ...extraPlatforms.map(
          (platform) =>
            `${label}: ${PLATFORM_NAMES[platform]} does not read this format; its settings are checked there anyway.`,
        ),
        ...reachNotices(input, cells),
      ];
      checked.push({ label, input: { ...input, notices }, cells });
    } catch (error) {
      if (!(error instanceof RdError) || error.code !== 'ERR_PROFILE_INVALID') throw error;
      checked.push({ label, problem: error });
    }
  }
  return checked;
}

/** Adds the values that the format's reader dropped. A platform that cannot read a file rejects it. */
function withLosses({ label, lost, unreadable }: CheckInput, cells: readonly CheckCell[]): readonly CheckCell[] {
  const unread: CheckFinding[] = unreadable
    ? [{ path: label, names: [], effect: 'refused', reason: unreadable.reason }]
    : [];
  if (lost.length + unread.length === 0) return cells;
  return cells.map((cell) => {
    const whole = cell.platform === unreadable?.platform ? unread : [];
    const findings = [...cell.findings, ...whole, ...lossFindings(lost, releaseIndex(cell.release))];
    return { ...cell, findings, verdict: verdictOf(findings) };
  });
}

/** True when no cell of any file is rejected; with `strict`, when nothing is ignored or changed either. */
function isAccepted(files: readonly CheckedFile[], strict: boolean): boolean {
  return files.every(
    (file) =>
      'cells' in file &&
      file.cells.every(({ verdict, findings }) => (strict ? findings.length === 0 : verdict !== 'rejected')),
  );
}

/** The `-o json` form: fields are added, never changed. */
function checkReport(files: readonly CheckedFile[], accepted: boolean): string {
  const report = { kind: 'ProfileCheck', formatVersion: 1, accepted, files: files.map(fileReport) };
  return `${JSON.stringify(report, null, 2)}\n`;
}

function fileReport(file: CheckedFile): object {
  if ('problem' in file) {
    const { message, details } = file.problem;
    return { file: file.label, problem: { message, details }, cells: [], findings: [] };
  }
  const { input, cells } = file;
  return {
    file: file.label,
    format: input.format,
    parts: input.parts.map(({ part, settings }) => ({ part, version: settings.version ?? null })),
    cells: cells.map(({ release, settingsVersion, platform, verdict }) => ({
      release,
      settingsVersion,
      platform: wordOf(platform),
      verdict,
    })),
    findings: spread(cells).map(({ finding, where }) => ({
      part: finding.part ?? null,
      path: finding.path,
      place: input.place(finding.names),
      effect: finding.effect,
      reason: finding.reason,
      suggestion: finding.suggestion,
      where: where.map(({ platform, releases }) => ({ platform: wordOf(platform), releases })),
    })),
    notices: input.notices,
  };
}
