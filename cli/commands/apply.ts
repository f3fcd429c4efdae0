import { homeOf } from '../absence.ts';
import { applyNow, type Wanted } from '../applying.ts';
import { defineCommand } from '../command.ts';
import { checkDriver } from '../driver-name.ts';
import { FILE_FLAG } from '../file-flag.ts';
import { TARGET_FLAG } from '../targets.ts';
import { OUTPUT_FLAG, viewFor } from '../views/choose.ts';
import { wantedOf } from '../wanted.ts';

const DEFAULT_TIMEOUT = 10 * 60_000;

export const apply = defineCommand({
  name: 'apply',
  summary: 'Make the desktop match a profile, and wait until it does',
  usage: '-f FILE... | PLAN [-f FILE...] | --previous',
  description: `Plans, has the service carry out the plan, and waits until it has converged. Where nothing differs
nothing is sent. The service finishes what it accepted, also when this command is interrupted. With no service running it starts one. PLAN is a file of \`rdctl plan --out-file\` that nobody else
can write.
Before data is destroyed it asks, or without a terminal refuses; --allow-reset agrees beforehand.
Exit codes: 0 done; 1 failed; 3 refused: invalid profile, locked or unsupported setting, wrong target;
4 not ready in time; 5 consent needed; 6 something moved since the plan was saved.`,
  flags: {
    file: FILE_FLAG,
    previous: { type: 'boolean', summary: 'Go back to what was there before the last apply' },
    'allow-reset': { type: 'boolean', summary: 'Agree to the loss of data that the plan names' },
    yes: { type: 'boolean', short: 'y', summary: 'Ask nothing; the same as --allow-reset' },
    'skip-locked': { type: 'boolean', summary: 'Apply what locks allow and list the rest' },
    'skip-unsupported': { type: 'boolean', summary: 'Apply what the driver supports and list the rest' },
    timeout: { type: 'duration', summary: 'Longest time to wait (default 10m)' },
    'no-wait': { type: 'boolean', summary: 'Send and return; do not wait for the backend' },
    'no-start': { type: 'boolean', summary: 'Refuse when no service is running' },
    driver: { type: 'string', summary: 'Driver of a service that is started for the first time', placeholder: 'NAME' },
    target: TARGET_FLAG,
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const view = viewFor(flags.output, io);
    const where = homeOf(io);
    checkDriver(flags.driver, io.env);
    const wanted: Wanted = await wantedOf({
      files: flags.file ?? [],
      args,
      previous: flags.previous ?? false,
      io,
      view,
      where,
    });
    await applyNow({
      wanted,
      caller: invocation,
      view,
      where,
      timeoutMs: flags.timeout ?? DEFAULT_TIMEOUT,
      agreed: flags['allow-reset'] === true || flags.yes === true,
      skipLocked: flags['skip-locked'] ?? false,
      skipUnsupported: flags['skip-unsupported'] ?? false,
      wait: !flags['no-wait'],
      start: !flags['no-start'],
      ...(flags.driver === undefined ? {} : { driver: flags.driver }),
      ...(flags.target === undefined ? {} : { target: flags.target }),
    });
    return 0;
  },
});
