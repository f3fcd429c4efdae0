import { PARTS } from '../../../profiles/formats/format.ts';
import { RELEASES } from '../../../src/settings/releases.ts';
import { usage } from '../../arguments.ts';
import { defineCommand } from '../../command.ts';
import { OUTPUT_FLAG } from '../../views/choose.ts';

export const profileCheck = defineCommand({
  name: 'profile check',
  summary: 'Show which releases would accept a deployment profile',
  usage: 'FILE...',
  description: `For each release of the original application from ${RELEASES[0]?.name} to ${RELEASES.at(-1)?.name}, on macOS, Linux and
Windows: would it start with this deployment profile, what would it ignore, and why.
FILE is a deployment file of any format (.plist, .mobileconfig, .reg, Registry.pol,
locked.json), a profile, which is checked as the two parts that create-profile would
write, or bare settings. - is standard input. A deployment file is checked on the
system that reads its format, everything else on all three, unless --platform says.
Exit codes: 0 no cell of the table is refused; 3 one is, or --strict and
something is ignored or changed; 1 failed.

  rdctl profile check locked.reg
  rdctl profile check team.yaml --release 1.20 --release 1.24 --platform windows`,
  flags: {
    output: OUTPUT_FLAG,
    part: {
      type: 'string',
      summary: 'What a file is that does not say it by its name (default locked)',
      values: PARTS,
    },
    platform: {
      type: 'strings',
      summary: 'Only this system, also for a file of another one; repeatable',
      offers: ['macos', 'linux', 'windows'],
      placeholder: 'NAME',
    },
    release: {
      type: 'strings',
      summary: 'Only this release; repeatable',
      offers: RELEASES.map(({ name }) => name),
      placeholder: 'VERSION',
    },
    strict: { type: 'boolean', summary: 'Exit with 3 when anything is ignored or changed, too' },
  },
  classic: false,
  async run({ flags, args, io }) {
    if (args.length === 0) {
      throw usage('no file was given', 'Give one or more files, or - for standard input.');
    }
    if (args.filter((name) => name === '-').length > 1) {
      throw usage('standard input can be read once, and - was given twice');
    }
    const [{ checkFiles, checkReport, isAccepted, selectionOf }, { checkText }, { style }, { plainText }] =
      await Promise.all([
        import('../../profile-check.ts'),
        import('../../views/profile-check-text.ts'),
        import('../../views/style.ts'),
        import('../../views/value.ts'),
      ]);
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
      if ('cells' in file) return checkText(file.label, file.cells, file.input.place, style(io.colour), io.columns);
      const { message, details } = file.problem;
      return `${plainText(`${file.label}: not checked: ${message}`)}\n${details.map((line) => `  ${plainText(line)}\n`).join('')}`;
    });
    io.out(texts.join('\n'));
    return accepted ? 0 : 3;
  },
});
