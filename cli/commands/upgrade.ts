import { noArguments } from '../arguments/arguments.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

export const upgrade = defineCommand({
  name: 'upgrade',
  summary: 'Replace this program with a newer release, or go back',
  usage: '',
  description: `Only of the standalone file, and only when you run it: rdctl never looks for releases by itself. Takes a release only if a
trusted key has signed it: the one that this file was built with, or those in \`allowed-signers\` in the directory of
the settings. Downloads the file for this computer, verifies it, runs it once, and only then puts it in the place of this
program. The old one stays beside it, hidden, and --back exchanges the two. A running service and its engine stay as they are.
A lower version or a prerelease is installed only if --version names it.
Exit codes: 0 done, or nothing newer; with --check 2 if there is a release to install; 3 refused; 1 any other failure.
-o json prints {outcome, current, version, from, program, previous, signer, services}.

  rdctl upgrade --check
  sudo rdctl upgrade
  sudo rdctl upgrade --back`,
  flags: {
    'allowed-signers': {
      type: 'string',
      summary: 'File with the keys that may sign releases (default: the built-in key)',
      placeholder: 'FILE',
    },
    back: { type: 'boolean', summary: 'Go back to the version before the last upgrade' },
    'base-url': {
      type: 'string',
      summary: 'Where releases are: an https address or a directory (default: RDCTL_UPGRADE_URL)',
      placeholder: 'URL',
    },
    check: { type: 'boolean', summary: 'Only show what there is', aliases: ['dry-run'] },
    version: { type: 'string', summary: 'Install this version, also a lower one', placeholder: 'VERSION' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'upgrade');
    const others = ['allowed-signers', 'base-url', 'check', 'version'] as const;
    const other = flags.back ? others.find((name) => flags[name] !== undefined) : undefined;
    if (other !== undefined) throw usage(`--back cannot be combined with --${other}`);
    const { goBack, upgradeTo } = await import('./upgrade/carry-out.ts');
    const { exitOf, printUpgrade } = await import('./upgrade/report.ts');
    const report = await (flags.back ? goBack(io) : upgradeTo(flags, io));
    printUpgrade(report, flags.output, io);
    return exitOf(report);
  },
});
