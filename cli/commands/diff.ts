import { defineCommand } from '../command.ts';
import { desiredOf } from '../desired.ts';
import { checkDriver, DRIVER_FLAG } from '../driver-name.ts';
import { FILE_FLAG } from '../file-flag.ts';
import { planFor } from '../planning.ts';
import { runningService } from '../service.ts';
import { OUTPUT_FLAG, viewFor } from '../views/choose.ts';

export const diff = defineCommand({
  name: 'diff',
  summary: 'Show where the desktop differs from a profile',
  usage: '[-f] FILE...',
  description: `Compares only what the profile mentions; different spellings of one value are equal.
With no service running it compares with the stored settings.
Differences that cannot be changed here (a lock, or the driver) are marked.
Exit codes: 0 no difference; 2 there are differences; 3 the profile is invalid or the target is not ours; 1 failed.`,
  flags: {
    file: FILE_FLAG,
    driver: DRIVER_FLAG,
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    checkDriver(flags.driver, io.env);
    const view = viewFor(flags.output, io);
    const desired = await desiredOf([...(flags.file ?? []), ...args], io, view);
    const compared = await planFor(desired, await runningService(invocation), io, flags.driver);
    view.diff(compared);
    return compared.changes.length > 0 ? 2 : 0;
  },
});
