import { patternWarnings } from '../../src/allowed-images/pattern.ts';
import { formatFindings } from '../../src/settings/issue.ts';
import { loadFiles } from '../arguments/profile-files.ts';
import { defineCommand } from '../command.ts';
import { OUTPUT_FLAG, viewFor } from '../views/view.ts';

export const validate = defineCommand({
  name: 'validate',
  summary: 'Check a profile without changing anything',
  usage: '[-f] FILE...',
  description: `Reports all errors at once, each as \`file:line:column: message\`, so that editors can jump to them.
Does not need a service; only \`rdctl plan\` checks whether the driver supports a setting.
Several files are checked individually and then together, with later files overriding earlier ones.
A lock without a value is a warning, because no deployment profile can express it.
Exit codes: 0 valid; 3 invalid; 1 a file could not be read.

  rdctl validate -f team.yaml`,
  flags: {
    file: {
      type: 'strings',
      short: 'f',
      summary: 'Profile or settings file, or - for standard input',
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
