import { readFindings } from '../../src/client/diagnostics.ts';
import { isObject } from '../../src/json.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';
import { requireService } from '../session/service.ts';
import { OUTPUT_FLAG } from '../views/choose.ts';
import { diagnosticsText } from '../views/diagnostics-text.ts';
import { style } from '../views/style.ts';

export const diagnostics = defineCommand({
  name: 'diagnostics',
  summary: 'Show what is wrong in and around the desktop',
  usage: '',
  description: `Shows what the service found when it last looked; --run looks anew. Muted checks
(setting diagnostics.mutedChecks) are left out unless diagnostics.showMuted is on.

Exit codes: 0 nothing failed; 2 something failed that is not muted; 1 it could not be told.
With -o json it prints the record of \`GET /v1/diagnostic_checks\`, passed checks included.`,
  flags: {
    run: { type: 'boolean', summary: 'Run all checks first, and wait for them' },
    all: { type: 'boolean', summary: 'Show what passed, too' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { flags, io } = invocation;
    noArguments(invocation.args, 'diagnostics');
    const { client } = await requireService(invocation);
    const { settings } = await client.settings();
    const found = await readFindings(client, flags.run === true, settings);
    const showMuted = isObject(settings.diagnostics) && settings.diagnostics.showMuted === true;
    const shown = { ...found, checks: found.checks.filter(({ mute }) => showMuted || !mute) };
    io.out(
      flags.output === 'json'
        ? `${JSON.stringify(shown, null, 2)}\n`
        : diagnosticsText(shown, flags.all === true, style(io.color)),
    );
    return found.checks.some(({ passed, mute }) => !passed && !mute) ? 2 : 0;
  },
});
