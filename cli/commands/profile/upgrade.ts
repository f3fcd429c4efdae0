import { arch, release } from 'node:os';
import { resolve } from 'node:path';
import { RdError } from '../../../src/errors.ts';
import { usage } from '../../arguments.ts';
import { defineCommand, type Invocation } from '../../command.ts';
import { supportedPlatform } from '../../platform.ts';
import { OUTPUT_FLAG } from '../../views/choose.ts';

const FLAGS = {
  'dry-run': { type: 'boolean', summary: 'Show what would change, and write nothing' },
  'out-file': { type: 'string', summary: 'Write to this file and leave the other alone', placeholder: 'FILE' },
  output: OUTPUT_FLAG,
  platform: {
    type: 'string',
    summary: 'System that the file is for (default this one)',
    values: ['macos', 'linux', 'windows'],
  },
} as const;

export const profileUpgrade = defineCommand({
  name: 'profile upgrade',
  summary: 'Rewrite a file to the newest settings version',
  usage: 'FILE',
  description: `FILE is YAML or JSON: bare settings or a profile. Settings that moved take their
comments along; what does not change keeps its place and its spelling. Settings that
have ended are taken out with the comments right above and behind them, and a note says
why. What a few old values meant depends on the system: --platform says which. The new
text is read again and compared before the file is replaced; what changed is printed as
a unified diff.
With - the document is read from standard input, the new one goes to standard output and
the diff to stderr.
Exit codes: 0 done, or nothing to do; 2 --dry-run found something to do; 3 the document has
mistakes; 1 failed.

  rdctl profile upgrade --dry-run defaults.yaml
  rdctl profile upgrade defaults.yaml`,
  flags: FLAGS,
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const name = fileOf(args);
    checkFlags(invocation, name);
    const { outFilePath, writeOutFile } = await import('../../out-file.ts');
    const path = outFilePath(flags['out-file'], io);
    const [
      { upgradeDocument },
      { platformNotices, refuseDeployment, upgradeDiff, upgradeNotes, upgradeReport },
      { readSource },
      { plainText },
      { platformOf },
    ] = await Promise.all([
      import('../../../profiles/document/upgrade/upgrade.ts'),
      import('../../upgraded.ts'),
      import('../../../profiles/document/source.ts'),
      import('../../views/value.ts'),
      import('../../platform-words.ts'),
    ]);
    const source = await readSource(name, { cwd: io.cwd, readStdin: (limit) => io.readStdin(limit) });
    await refuseDeployment(source);
    const here = supportedPlatform(io.platform);
    const platform = flags.platform === undefined ? here : platformOf(flags.platform);
    // What else there is to know of a computer is known of this one alone.
    const context = { platform, arch: arch(), ...(platform === here ? { osRelease: release() } : {}) };
    const upgraded = await upgradeDocument(source.bytes, source.label, context);
    const todo = upgraded.changes.length > 0;
    const dry = flags['dry-run'] ?? false;
    const written = todo && !dry;
    if (written && name !== '-' && flags['out-file'] === undefined) {
      const { replaceFile } = await import('../../replace-file.ts');
      await replaceFile(resolve(io.cwd, name), source.bytes, upgraded.after);
    }
    if (written && path !== undefined) {
      // What is shown covers secrets.
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
      else io.err(`${source.label} is of version ${upgraded.to}, the newest: nothing to do.\n`);
    }
    const file = flags['out-file'] ?? name;
    if (written && file !== '-') io.err(`Wrote ${plainText(file)}.\n`);
    return todo && dry ? 2 : 0;
  },
});

/** One at a time: each has an exit code, a diff and a report of its own. */
function fileOf(args: readonly string[]): string {
  const [name, ...more] = args;
  if (name === undefined) throw usage('no file was given', 'Give one, or - for standard input.');
  if (more.length > 0) {
    throw usage(
      `one file is upgraded at a time, and ${args.length} were given`,
      'In a shell: for file in *.yaml; do rdctl profile upgrade "$file"; done',
    );
  }
  return name;
}

function checkFlags({ flags }: Invocation<typeof FLAGS>, name: string): void {
  if (flags['dry-run'] && flags['out-file'] !== undefined) {
    throw usage('--dry-run writes nothing, and --out-file says where to write');
  }
  if (flags.output === 'json' && name === '-' && !flags['dry-run'] && flags['out-file'] === undefined) {
    throw new RdError('ERR_USAGE', 'two documents cannot go to standard output: the upgraded one and the report', {
      advice: 'Add --out-file FILE or --dry-run, or leave -o json away.',
    });
  }
}

/** The permission bits of the file that was read. */
async function modeOf(path: string | undefined): Promise<number> {
  if (path === undefined) return 0o644;
  const { stat } = await import('node:fs/promises');
  const { mode } = await stat(path);
  return mode & 0o666;
}
