import { ALL, type CheckSelection, checkProfile } from '../profiles/check/check.ts';
import { type CheckCell, type CheckFinding, verdictOf } from '../profiles/check/finding.ts';
import { type CheckInput, checkInput, lossFindings, reachNotices } from '../profiles/check/input.ts';
import { spread } from '../profiles/check/summary.ts';
import { readSource } from '../profiles/document/source.ts';
import { type Part, PROFILE_LIMIT } from '../profiles/formats/format.ts';
import { RdError } from '../src/errors.ts';
import { PLATFORM_NAMES } from '../src/settings/field.ts';
import { RELEASES, releaseIndex } from '../src/settings/releases.ts';
import { usage } from './arguments.ts';
import type { Io } from './command.ts';
import { quote } from './literals.ts';
import { platformOf, wordOf } from './platform-words.ts';

/** One file and what became of it. */
export type CheckedFile = { label: string } & (
  | { input: CheckInput; cells: readonly CheckCell[] }
  /** It could not be taken apart. */
  | { problem: RdError }
);

/** What `--release` and `--platform` leave of the table; without the latter the platforms of each file. */
export interface WantedCells {
  releases: CheckSelection['releases'];
  platforms?: CheckSelection['platforms'];
}

/**
 * @throws RdError `ERR_USAGE` for a release that is not in the table.
 */
export function selectionOf(releases: readonly string[], platforms: readonly string[]): WantedCells {
  const wanted = new Set(releases.map(releaseName));
  const systems = new Set(platforms.map(platformOf));
  return {
    releases: releases.length === 0 ? ALL.releases : RELEASES.filter(({ name }) => wanted.has(name)),
    ...(platforms.length === 0 ? {} : { platforms: ALL.platforms.filter((platform) => systems.has(platform)) }),
  };
}

/** `1.20`, also from `v1.20.1`. */
function releaseName(text: string): string {
  const name = /^v?(\d+\.\d+)(?:\.\d+)?$/.exec(text)?.[1];
  const known = RELEASES.find((release) => release.name === name);
  if (known) return known.name;
  const names = RELEASES.map((release) => release.name);
  throw usage(`--release ${quote(text)}: known are ${names[0]} to ${names.at(-1)}`);
}

/** Every file on its own. Throws `ERR_IO` for one that cannot be read; what is wrong in one is told with it. */
export async function checkFiles(
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
      const strangers = (selection.platforms ?? []).filter((platform) => !input.platforms.includes(platform));
      const notices = [
        ...input.notices,
        ...strangers.map(
          (platform) =>
            `${label}: ${PLATFORM_NAMES[platform]} reads no such file; its settings are checked there all the same.`,
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

/** With what the reader of a format left out; what a system cannot read at all is refused there. */
function withLosses({ label, lost, unreadable }: CheckInput, cells: readonly CheckCell[]): readonly CheckCell[] {
  const losses = lossFindings(lost);
  const unread: CheckFinding[] = unreadable
    ? [{ path: label, names: [], effect: 'refused', reason: unreadable.reason }]
    : [];
  if (lost.length + unread.length === 0) return cells;
  return cells.map((cell) => {
    const whole = cell.platform === unreadable?.platform ? unread : [];
    const findings = [...cell.findings, ...whole, ...losses(releaseIndex(cell.release))];
    return { ...cell, findings, verdict: verdictOf(findings) };
  });
}

/** True when no cell of any file is refused; with `strict`, when nothing is ignored or changed either. */
export function isAccepted(files: readonly CheckedFile[], strict: boolean): boolean {
  return files.every(
    (file) =>
      'cells' in file &&
      file.cells.every(({ verdict, findings }) => (strict ? findings.length === 0 : verdict !== 'rejected')),
  );
}

/** The `-o json` form: a promise. Fields are added, never changed. */
export function checkReport(files: readonly CheckedFile[], accepted: boolean): string {
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
