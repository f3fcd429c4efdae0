import { arch, release } from 'node:os';
import { resolve } from 'node:path';
import { RdError } from '../../../src/errors.ts';
import { exactArguments, usage } from '../../arguments.ts';
import { defineCommand, type Invocation } from '../../command.ts';
import { supportedPlatform } from '../../platform.ts';
import { OUTPUT_FLAG } from '../../views/choose.ts';

const FLAGS = {
  'dry-run': { type: 'boolean', summary: 'Show what would change, and write nothing' },
  'out-file': { type: 'string', summary: 'Write to this file and leave the other alone', placeholder: 'FILE' },
  output: OUTPUT_FLAG,
} as const;

export const profileUpgrade = defineCommand({
  name: 'profile upgrade',
  summary: 'Rewrite a file to the newest settings version',
  usage: 'FILE',
  description: `FILE is YAML or JSON: bare settings or a profile. Settings that moved take their
comments along; what does not change keeps its place and its spelling. Settings that
have ended are taken out, each with the reason. The new text is read again and compared
before the file is replaced; what changed is printed as a unified diff.
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
    exactArguments(args, 1);
    const [name = ''] = args;
    checkFlags(invocation, name);
    const [{ upgradeDocument }, { refuseDeployment, upgradeDiff, upgradeNotes, upgradeReport }, { readSource }] =
      await Promise.all([
        import('../../../profiles/upgrade.ts'),
        import('../../upgraded.ts'),
        import('../../../profiles/source.ts'),
      ]);
    const source = await readSource(name, { cwd: io.cwd, readStdin: () => io.readStdin() });
    await refuseDeployment(source);
    const context = { platform: supportedPlatform(io.platform), arch: arch(), osRelease: release() };
    const upgraded = await upgradeDocument(source.bytes, source.label, context);
    const todo = upgraded.changes.length > 0;
    const dry = flags['dry-run'] ?? false;
    const written = todo && !dry;
    if (written && name !== '-' && flags['out-file'] === undefined) {
      const { replaceFile } = await import('../../replace-file.ts');
      await replaceFile(resolve(io.cwd, name), source.bytes, upgraded.after);
    }
    if (written && flags['out-file'] !== undefined) {
      const { writeOutFile } = await import('../../out-file.ts');
      await writeOutFile(resolve(io.cwd, flags['out-file']), upgraded.after, { mode: 0o644, replace: true });
    }
    for (const note of upgradeNotes(upgraded)) io.err(`note: ${note}\n`);
    if (flags.output === 'json') {
      io.out(upgradeReport(source.label, upgraded, written));
    } else {
      const piped = name === '-' && flags['out-file'] === undefined && !dry;
      if (piped) io.out(upgraded.after);
      if (todo) (piped ? io.err : io.out)(upgradeDiff(source.label, upgraded));
      else io.err(`${source.label} is of version ${upgraded.to}, the newest: nothing to do.\n`);
    }
    return todo && dry ? 2 : 0;
  },
});

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
