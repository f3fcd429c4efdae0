import { constants } from 'node:fs';
import { access, readFile, realpath, stat } from 'node:fs/promises';
import { arch, release } from 'node:os';
import { parse, resolve } from 'node:path';
import { readSource, type Source } from '../../../profiles/document/source.ts';
import { unifiedDiff } from '../../../profiles/document/text-diff.ts';
import type { Upgraded } from '../../../profiles/document/upgrade/upgrade.ts';
import { importerFor } from '../../../profiles/formats/index.ts';
import { RdError } from '../../../src/errors.ts';
import { editUserFile } from '../../../src/features/host-integration/user-file.ts';
import { defined } from '../../../src/json.ts';
import { writeFileAtomic } from '../../../src/os/atomic-file.ts';
import { ioError } from '../../../src/os/io-error.ts';
import { PLATFORM_NAMES, type Platform } from '../../../src/settings/field.ts';
import { FIELDS } from '../../../src/settings/fields.gen.ts';
import { escapeInLines } from '../../../src/settings/printable.ts';
import { outFilePath, writeOutFile } from '../../arguments/files.ts';
import { platformOf, usage } from '../../arguments/values.ts';
import { defineCommand, type Invocation } from '../../command.ts';
import { plainText } from '../../views/text.ts';
import { OUTPUT_FLAG } from '../../views/view.ts';

const FLAGS = {
  'dry-run': { type: 'boolean', summary: 'Show what would change without writing anything' },
  'out-file': { type: 'string', summary: 'Write to this file and leave the original unchanged', placeholder: 'FILE' },
  output: OUTPUT_FLAG,
  platform: {
    type: 'string',
    summary: 'Platform that the file is for (default: this one)',
    values: ['macos', 'linux', 'windows'],
  },
} as const;

export const profileUpgrade = defineCommand({
  name: 'profile upgrade',
  summary: 'Upgrade a file to the newest settings version',
  usage: 'FILE',
  description: `FILE is YAML or JSON: bare settings or a profile. Moved settings keep their
comments, and unchanged text is preserved. Settings that no longer
exist are removed with the comments directly above and after them, and a note gives the
reason. The meaning of a few old values depends on the platform, which --platform selects. The new
text is read back and verified before the file is replaced; the changes are printed as
a unified diff.
With -, reads standard input, and writes the new document to standard output and
the diff to stderr.
Exit codes: 0 done, or nothing to do; 2 --dry-run found something to do; 3 the document is
invalid; 1 failure.

  rdctl profile upgrade --dry-run defaults.yaml
  rdctl profile upgrade defaults.yaml`,
  flags: FLAGS,
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const name = fileOf(args);
    checkFlags(invocation, name);
    const path = outFilePath(flags['out-file'], io);
    const { upgradeDocument } = await import('../../../profiles/document/upgrade/upgrade.ts');
    const source = await readSource(name, { cwd: io.cwd, readStdin: (limit) => io.readStdin(limit) });
    await refuseDeployment(source);
    const here = io.platform;
    const platform = flags.platform === undefined ? here : platformOf(flags.platform);
    // Other properties are only known for the local computer.
    const context = { platform, arch: arch(), ...(platform === here ? { osRelease: release() } : {}) };
    const upgraded = await upgradeDocument(source.bytes, source.label, context);
    const todo = upgraded.changes.length > 0;
    const dry = flags['dry-run'] ?? false;
    const written = todo && !dry;
    if (written && name !== '-' && flags['out-file'] === undefined) {
      await replaceFile(resolve(io.cwd, name), source.bytes, upgraded.after);
    }
    if (written && path !== undefined) {
      // The displayed text masks secrets.
      const secret = upgraded.after !== upgraded.shown.after;
      await writeOutFile(path, upgraded.after, { mode: secret ? 0o600 : await modeOf(source.path), replace: true });
    }
    const notices = [...upgraded.notices, ...(flags.platform === undefined ? platformNotices(upgraded, here) : [])];
    for (const note of upgradeNotes({ ...upgraded, notices })) io.err(`Note: ${plainText(note)}\n`);
    if (flags.output === 'json') {
      io.out(upgradeReport(source.label, { ...upgraded, notices }, written));
    } else {
      const piped = name === '-' && flags['out-file'] === undefined && !dry;
      if (piped) io.out(upgraded.after);
      if (todo) (piped ? io.err : io.out)(upgradeDiff(source.label, upgraded));
      else io.err(`${source.label} is already at version ${upgraded.to}, the newest: nothing to do.\n`);
    }
    const file = flags['out-file'] ?? name;
    if (written && file !== '-') io.err(`Wrote ${plainText(file)}.\n`);
    return todo && dry ? 2 : 0;
  },
});

/** Returns the only file: each has its own exit code, diff and report. */
function fileOf(args: readonly string[]): string {
  const [name, ...more] = args;
  if (name === undefined) throw usage('no file specified', 'Specify one, or - for standard input.');
  if (more.length > 0) {
    throw usage(
      `only one file can be upgraded at a time; got ${args.length}`,
      'In a shell: for file in *.yaml; do rdctl profile upgrade "$file"; done',
    );
  }
  return name;
}

function checkFlags({ flags }: Invocation<typeof FLAGS>, name: string): void {
  if (flags['dry-run'] && flags['out-file'] !== undefined) {
    throw usage('--dry-run and --out-file cannot be used together');
  }
  if (flags.output === 'json' && name === '-' && !flags['dry-run'] && flags['out-file'] === undefined) {
    throw new RdError('ERR_USAGE', 'two documents cannot go to standard output: the upgraded one and the report', {
      advice: 'Add --out-file FILE or --dry-run, or omit -o json.',
    });
  }
}

/** The permission bits of the input file. */
async function modeOf(path: string | undefined): Promise<number> {
  if (path === undefined) return 0o644;
  const { mode } = await stat(path);
  return mode & 0o666;
}

/** Formats that are not edited by hand are regenerated. */
const REGENERATED_FORMATS = ['plist', 'mobileconfig', 'reg', 'registry.pol'];

/** @throws RdError `ERR_PROFILE_INVALID` for a deployment file, with advice on how to regenerate it. */
async function refuseDeployment(source: Source): Promise<void> {
  const importer = await importerFor(source);
  if (!importer || !REGENERATED_FORMATS.includes(importer.name)) return;
  const { label, path } = source;
  const file = path === undefined ? 'FILE' : label;
  const output = importer.name === 'registry.pol' ? 'reg' : importer.name;
  throw new RdError(
    'ERR_PROFILE_INVALID',
    `${label} is a deployment file (${importer.name}), which must be regenerated instead`,
    {
      advice: `rdctl import-profile ${file} --out-file profile.yaml && rdctl create-profile --output ${output} --input profile.yaml`,
    },
  );
}

/** The text diff for display; secrets are masked. */
function upgradeDiff(label: string, { from, to, shown }: Upgraded): string {
  const names = { before: `${label} (version ${from})`, after: `${label} (version ${to})` };
  return escapeInLines(unifiedDiff(shown.before, shown.after, names));
}

/** Lists removed settings, the fate of comments, and other notices. */
function upgradeNotes({ changes, notices }: Pick<Upgraded, 'changes' | 'notices'>): string[] {
  const taken = changes.flatMap(({ from, to, reason, comments }) => {
    const what = comments === undefined ? '' : ` with its comment${comments.length === 1 ? '' : 's'}`;
    if (to === undefined) return [`${from} was removed${what}: it ${reason}`];
    return comments === undefined ? [] : [`entries of ${from} were removed with their comments: ${reason}`];
  });
  return [...taken, ...notices];
}

/** Settings whose value would differ on another platform. */
function platformNotices({ platformDependent }: Upgraded, here: Platform): string[] {
  if (platformDependent.length === 0) return [];
  return [
    `${platformDependent.join(', ')}: upgraded for ${PLATFORM_NAMES[here]}, this platform; for another one, use --platform`,
  ];
}

/** The `-o json` form: fields are added, never changed. */
function upgradeReport(file: string, { from, to, changes, notices }: Upgraded, written: boolean): string {
  const shown = changes.map((change) => ({
    from: change.from,
    to: change.to ?? null,
    before: maskSecret(change.from, change.before),
    ...(change.to === undefined ? {} : { after: maskSecret(change.to, change.after) }),
    reason: change.reason,
    ...defined({ comments: change.comments }),
  }));
  const report = { kind: 'ProfileUpgrade', formatVersion: 1, file, from, to, changes: shown, notices, written };
  return `${JSON.stringify(report, null, 2)}\n`;
}

function maskSecret(path: string, value: unknown): unknown {
  return FIELDS.some((field) => field.path === path && field.sensitive) ? '********' : value;
}

const ADVICE = 'Make the file writable, or name another one with --out-file FILE.';

/**
 * Replaces a file's content atomically. Owner, permissions and attributes are kept; a symbolic link is followed.
 * @throws RdError `ERR_IO` for a read-only file, or one that changed since it was read; nothing is written then.
 */
export async function replaceFile(path: string, before: Uint8Array, after: string): Promise<void> {
  const file = await realpath(path).catch((cause: unknown) => {
    throw ioError('read', path, cause);
  });
  const { mode } = await stat(file);
  // Root can write everything, but a read-only file was meant to stay unchanged.
  const writable =
    (mode & 0o222) !== 0 &&
    (await access(file, constants.W_OK).then(
      () => true,
      () => false,
    ));
  if (!writable) throw new RdError('ERR_IO', `${path} was not changed: it is read-only`, { advice: ADVICE });
  const same = (now: Buffer) => {
    if (!now.equals(before)) {
      throw new RdError('ERR_IO', `${path} was not changed: another program changed it in the meantime`, {
        advice: 'Try again.',
      });
    }
  };
  if (process.platform === 'win32') {
    same(await readFile(file));
    await writeFileAtomic(file, after, { mode });
    return;
  }
  await editUserFile(
    file,
    (text) => {
      same(Buffer.from(text ?? '', 'latin1'));
      return Buffer.from(after).toString('latin1');
    },
    { within: [parse(file).root], shared: true },
  );
}
