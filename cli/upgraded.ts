import type { Source } from '../profiles/document/source.ts';
import { unifiedDiff } from '../profiles/document/text-diff.ts';
import type { Upgraded } from '../profiles/document/upgrade/upgrade.ts';
import { importerFor } from '../profiles/formats/index.ts';
import { RdError } from '../src/errors.ts';
import { PLATFORM_NAMES, type Platform } from '../src/settings/field.ts';
import { FIELDS } from '../src/settings/fields.gen.ts';
import { escapedInLines } from '../src/settings/printable.ts';

/** Those who are not for people to edit are written anew from a document of ours. */
const WRITTEN_ANEW = ['plist', 'mobileconfig', 'reg', 'registry.pol'];

/** @throws RdError `ERR_PROFILE_INVALID` for a deployment file, with the way to a new one. */
export async function refuseDeployment(source: Source): Promise<void> {
  const importer = await importerFor(source);
  if (!importer || !WRITTEN_ANEW.includes(importer.name)) return;
  const { label, path } = source;
  const file = path === undefined ? 'FILE' : label;
  const output = importer.name === 'registry.pol' ? 'reg' : importer.name;
  throw new RdError(
    'ERR_PROFILE_INVALID',
    `${label} is a deployment file (${importer.name}), which is written anew instead`,
    {
      advice: `rdctl import-profile ${file} --out-file profile.yaml && rdctl create-profile --output ${output} --input profile.yaml`,
    },
  );
}

/** What changed in the text, for a person: secrets are covered. */
export function upgradeDiff(label: string, { from, to, shown }: Upgraded): string {
  const names = { before: `${label} (version ${from})`, after: `${label} (version ${to})` };
  return escapedInLines(unifiedDiff(shown.before, shown.after, names));
}

/** What has ended, what became of comments, and what else somebody should know. */
export function upgradeNotes({ changes, notices }: Pick<Upgraded, 'changes' | 'notices'>): string[] {
  const taken = changes.flatMap(({ from, to, reason, comments }) => {
    const what = comments === undefined ? '' : ` with its comment${comments.length === 1 ? '' : 's'}`;
    if (to === undefined) return [`${from} was taken out${what}: it ${reason}`];
    return comments === undefined ? [] : [`entries of ${from} were taken out with their comments: ${reason}`];
  });
  return [...taken, ...notices];
}

/** Settings that would have another value on another system than this one. */
export function platformNotices({ platformDependent }: Upgraded, here: Platform): string[] {
  if (platformDependent.length === 0) return [];
  return [
    `${platformDependent.join(', ')}: as on ${PLATFORM_NAMES[here]}, where this runs; for another system give --platform`,
  ];
}

/** The `-o json` form: a promise. */
export function upgradeReport(file: string, { from, to, changes, notices }: Upgraded, written: boolean): string {
  const shown = changes.map((change) => ({
    from: change.from,
    to: change.to ?? null,
    before: covered(change.from, change.before),
    ...(change.to === undefined ? {} : { after: covered(change.to, change.after) }),
    reason: change.reason,
    ...(change.comments === undefined ? {} : { comments: change.comments }),
  }));
  const report = { kind: 'ProfileUpgrade', formatVersion: 1, file, from, to, changes: shown, notices, written };
  return `${JSON.stringify(report, null, 2)}\n`;
}

function covered(path: string, value: unknown): unknown {
  return FIELDS.some((field) => field.path === path && field.sensitive) ? '********' : value;
}
