import { chmod, mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SelectedSettings } from '../../profiles/document/selection.ts';
import { encodeRegistryFile, isAscii, type Part } from '../../profiles/formats/format.ts';
import { RdError } from '../../src/errors.ts';
import { writeOutFile, writeOutFiles } from '../arguments/files.ts';
import { defineCommand, type Io } from '../command.ts';
import {
  type CreateProfile,
  deploymentInput,
  FLAGS,
  type ProfileRequest,
  requestOf,
  strayArgument,
} from './create-profile/request.ts';

/** Maximum warnings shown; a document can hold thousands of unknown names. */
const MAX_SHOWN = 50;

export const createProfile = defineCommand({
  name: 'create-profile',
  summary: 'Write a deployment profile for macOS, Windows or Linux',
  usage: '',
  description: `Writes settings as a deployment profile for Rancher Desktop. The
input is YAML, or JSON in braces or in a file named *.json: bare settings, or a profile, whose locked settings form the locked
part and all others the defaults part. Invalid settings are errors. Unknown names are left out with a warning; in a profile, they are errors.
With --check, settings that the newest release would refuse or ignore are reported as warnings (rdctl profile check covers all
releases); --strict includes --check.
Notes are additional information, not warnings.
With --from-settings, secrets and settings specific to this computer are left out.
Exit codes: 0 written; 1 not written, including any warning with --strict.

  rdctl create-profile --output plist --input team.yaml --out-dir .
  rdctl create-profile --output reg --input team.yaml --encoding utf-16le \\
                       --out-file locked.reg
  rdctl create-profile --output json --part defaults --from-settings \\
                       --changed-only
  rdctl create-profile --output mobileconfig --input team.yaml --only kubernetes
  rdctl create-profile --output admx --out-dir PolicyDefinitions`,
  flags: FLAGS,
  classic: true,
  async run(invocation) {
    const [stray] = invocation.args;
    if (stray !== undefined) throw strayArgument(stray);
    const request = requestOf(invocation);
    if (request.what === 'templates') return await writeTemplates(request.directory, invocation.io);
    return await writeProfile(invocation, request);
  },
});

async function writeProfile(
  invocation: CreateProfile,
  request: Extract<ProfileRequest, { what: 'profile' }>,
): Promise<number> {
  const { flags, io } = invocation;
  const [{ EXPORTERS }, { selectSettings }, { deploymentTree }] = await Promise.all([
    import('../../profiles/formats/index.ts'),
    import('../../profiles/document/selection.ts'),
    import('../../profiles/formats/tree.ts'),
  ]);
  const exporter = await EXPORTERS[request.format]?.();
  if (!exporter) throw new Error(`no exporter ${request.format}`);
  const { platform } = exporter;
  const input = await deploymentInput(invocation, platform);
  const selected = await selectSettings(input, {
    part: request.part,
    platform,
    only: flags.only ?? [],
    except: flags.except ?? [],
    changedOnly: flags['changed-only'] ?? false,
    keepVersion: flags['keep-version'] ?? false,
    inForce: flags['from-settings'] ?? false,
  });
  const tree = await deploymentTree(selected.settings);
  const text = exporter.text(tree, request);
  // Loaded on demand: checking the releases costs more than all the rest.
  const { judgement } = flags.check || flags.strict ? await import('../../profiles/check/check.ts') : {};
  const evaluation = judgement?.(input, selected, { part: request.part, platform }) ?? { warnings: [], notes: [] };
  const own = remarks(text, selected.elsewhere, request);
  const warnings = [...selected.warnings, ...evaluation.warnings, ...own.warnings];
  if (flags.strict && warnings.length > 0) {
    throw new RdError('ERR_PROFILE_INVALID', 'the profile was not written, because of warnings and --strict:', {
      details: firstLines(warnings),
    });
  }
  for (const line of firstLines(warnings)) io.err(`Warning: ${line}\n`);
  for (const line of firstLines([...selected.notes, ...evaluation.notes, ...own.notes])) io.err(`Note: ${line}\n`);
  const data = request.encoding === 'utf-8' ? text : encodeRegistryFile(text, request.encoding);
  if (!request.destination) {
    io.out(data);
    return 0;
  }
  const { destination } = request;
  if ('directory' in destination) await makeOneDirectory(destination.directory);
  const file =
    'file' in destination
      ? destination.file
      : join(destination.directory, exporter.fileName(request.part, request.hive));
  // The application reads a profile as the logged-in user. Granting that for a profile with a password is left to the
  // administrator.
  const replaced = await writeOutFile(file, data, {
    mode: selected.secret ? 0o600 : 0o644,
    exact: true,
    replace: true,
  });
  const bits = await permissionsOf(file);
  const alone = selected.secret && (bits & 0o077) === 0;
  io.err(`${writtenText(file, replaced)}${alone ? ', readable only by you: it contains a password' : ''}.\n`);
  if (replaced && !selected.secret && (bits & 0o044) !== 0o044) {
    io.err(`Note: ${file} keeps its restrictive permissions, but the application reads it as the logged-in user.\n`);
  }
  return 0;
}

/** Returns the permissions of a file; one that was deleted right away counts as world-readable. */
async function permissionsOf(path: string): Promise<number> {
  return stat(path).then(
    ({ mode }) => mode,
    () => 0o044,
  );
}

async function writeTemplates(directory: string, io: Io): Promise<number> {
  const { admxFiles } = await import('../../profiles/formats/admx.ts');
  await makeOneDirectory(directory);
  const files = admxFiles().map(({ path, text }) => ({ path: join(directory, path), data: text }));
  for (const { path } of files) if (dirname(path) !== directory) await makeOneDirectory(dirname(path));
  const replaced = await writeOutFiles(files, { mode: 0o644, exact: true, replace: true });
  for (const [index, { path }] of files.entries()) io.err(`${writtenText(path, replaced[index] ?? false)}.\n`);
  return 0;
}

function writtenText(path: string, replaced: boolean): string {
  return `${replaced ? 'Replaced' : 'Wrote'} ${path}`;
}

/** Creates a world-readable directory. Its parents must exist: a missing one is a typo in the name. */
async function makeOneDirectory(path: string): Promise<void> {
  try {
    await mkdir(path);
    await chmod(path, 0o755);
  } catch (cause) {
    if (
      await stat(path).then(
        (facts) => facts.isDirectory(),
        () => false,
      )
    )
      return;
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    const [reason, advice] =
      code === 'EEXIST'
        ? ['a file with this name exists', 'Choose another path; --out-file names a file.']
        : [
            code === 'ENOENT' ? 'the parent directory does not exist' : String(code),
            'Create it first, or choose another path.',
          ];
    throw new RdError('ERR_IO', `could not create the directory ${path}: ${reason}`, { cause, advice });
  }
}

function firstLines(lines: readonly string[]): string[] {
  const more = lines.length - MAX_SHOWN;
  return more <= 0 ? [...lines] : [...lines.slice(0, MAX_SHOWN), `… and ${more} more`];
}

type FileRequest = Pick<Extract<ProfileRequest, { what: 'profile' }>, 'format' | 'part' | 'encoding'>;

/** A string or list value that a .reg file stores as bytes. */
const TEXT_BYTES = /^"(?:[^"\\]|\\.)*"=hex\([17]\):/m;

/** Returns notes on a created file: its encoding, and the settings left to the other view. */
function remarks(
  text: string,
  elsewhere: SelectedSettings['elsewhere'],
  request: FileRequest,
): { warnings: string[]; notes: string[] } {
  const warnings: string[] = [];
  const notes = otherPart(elsewhere, request);
  if (request.format !== 'reg' || request.encoding !== 'utf-8') return { warnings, notes };
  if (!isAscii(text)) {
    warnings.push('regedit would misread non-ASCII characters; use --encoding utf-16le.');
  }
  if (TEXT_BYTES.test(text)) {
    notes.push(
      'use --encoding utf-16le for lists and text with control characters: some programs misread them in UTF-8.',
    );
  }
  return { warnings, notes };
}

function otherPart({ settings, only }: SelectedSettings['elsewhere'], { part, format }: FileRequest): string[] {
  const other: Part = part === 'locked' ? 'defaults' : 'locked';
  const writes = (it: string) => `(--${format === 'reg' ? 'type' : 'part'} ${other} writes ${it})`;
  const among = other === 'locked' ? 'locked' : 'among the defaults';
  const notes = only.map((name) => `--only ${name} matches nothing in this file: it is ${among} ${writes('it')}.`);
  const what = other === 'locked' ? ['locked', 'locked'] : ['a default', 'defaults'];
  if (settings === 1) notes.push(`1 setting is ${what[0]} and not in this file ${writes('it')}.`);
  else if (settings > 1) notes.push(`${settings} settings are ${what[1]} and not in this file ${writes('them')}.`);
  return notes;
}
