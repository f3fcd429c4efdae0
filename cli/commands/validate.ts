import { patternWarnings } from '../../src/allowed-images/pattern.ts';
import { formatFindings } from '../../src/settings/finding.ts';
import { defineCommand } from '../command.ts';
import { loadFiles } from '../profile/desired.ts';
import { OUTPUT_FLAG, viewFor } from '../views/view.ts';

export const validate = defineCommand({
  name: 'validate',
  summary: 'Check a profile without touching anything',
  usage: '[-f] FILE...',
  description: `Finds all mistakes at once and prints each as \`file:line:column: message\`, which editors can jump to.
Works with nothing running; whether the driver supports a setting is known to \`rdctl plan\` only.
Several files are checked one by one and then together, later files over earlier ones.
A lock without a value is a warning: no deployment profile can be made of it.
Exit codes: 0 valid; 3 not valid; 1 a file could not be read.`,
  flags: {
    file: {
      type: 'strings',
      short: 'f',
      summary: 'Profile or settings file, - for standard input',
      placeholder: 'FILE',
    },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    const loaded = await loadFiles([...(flags.file ?? []), ...args], io);
    const { desired, findings, documents } = loaded;
    const warnings = [
      ...loaded.warnings,
      ...(desired ? [...patternWarnings(desired.request.settings), ...formatFindings(desired.idleLocks())] : []),
    ];
    const view = viewFor(flags.output, io);
    view.warnings(warnings);
    view.validation({ documents, findings, warnings });
    return findings.length === 0 ? 0 : 3;
  },
});
