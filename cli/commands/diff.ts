import { PARTS } from '../../profiles/formats/format.ts';
import { usage } from '../arguments.ts';
import { defineCommand } from '../command.ts';
import { desiredOf } from '../desired.ts';
import { checkDriver, DRIVER_FLAG } from '../driver-name.ts';
import { FILE_FLAG } from '../file-flag.ts';
import { PLAN_TIMEOUT_FLAG } from '../patient-client.ts';
import { planFor } from '../planning.ts';
import { runningService } from '../service.ts';
import { OUTPUT_FLAG, viewFor } from '../views/choose.ts';

const LAYERS = 'two names are compared with each other; give layers with -f: -f a.yaml -f b.yaml';

export const diff = defineCommand({
  name: 'diff',
  summary: 'Show where the desktop differs from a profile',
  usage: '[-f FILE]... | FILE | A B',
  description: `Compares only what the profile mentions; different spellings of one value are equal.
With no service running it compares with the stored settings.
Differences that cannot be changed here (a lock, or the driver) are marked.
Layers are given with -f: the later ones win.

Two names without -f are compared with each other: files with settings of any format (YAML,
JSON, plist, mobileconfig, reg, registry.pol), or \`live\` for the settings in force. What only
one of them mentions is shown as absent in the other; against \`live\` only what the file
mentions counts.
Exit codes: 0 no difference; 2 there are differences; 3 a file is invalid or the target is not
ours; 1 failed.

  rdctl diff profile.yaml
  rdctl diff live locked.reg --part locked
  rdctl diff profile.yaml Locked.mobileconfig`,
  flags: {
    file: FILE_FLAG,
    ...PLAN_TIMEOUT_FLAG,
    driver: DRIVER_FLAG,
    output: OUTPUT_FLAG,
    part: { type: 'string', summary: 'Of A and B: compare what is locked, or the rest', values: PARTS },
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const [a, b, ...more] = args;
    if (a !== undefined && b !== undefined) {
      if (more.length > 0 || flags.file) throw usage(LAYERS);
      if (flags.timeout !== undefined) throw usage('--timeout is about the desktop, and two files are compared');
      if (flags.driver !== undefined) throw usage('--driver is about the desktop, and two files are compared');
      const { compareTwo } = await import('../comparing.ts');
      return compareTwo([a, b], { output: flags.output, part: PARTS.find((part) => part === flags.part) }, invocation);
    }
    if (flags.part !== undefined) throw usage('--part is for the comparison of two: rdctl diff A B --part locked');
    checkDriver(flags.driver, io.env);
    const view = viewFor(flags.output, io);
    const desired = await desiredOf([...(flags.file ?? []), ...args], io, view);
    const compared = await planFor(desired, await runningService(invocation), io, flags.driver, flags.timeout);
    view.diff(compared);
    return compared.changes.length > 0 ? 2 : 0;
  },
});
