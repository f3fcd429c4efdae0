import { type Finding, type Findings, readFindings } from '../../src/client/diagnostics.ts';
import { isObject } from '../../src/json.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';
import { requireService } from '../session/service.ts';
import { count, plainText, type Style, style } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

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

/** Failed checks as text; with `all`, every check. Muted ones are not counted. */
export function diagnosticsText({ last_update, checks }: Findings, all: boolean, paint: Style): string {
  if (checks.length === 0) return 'Nothing has been looked at yet: `rdctl diagnostics --run` does.\n';
  const shown = checks.filter(({ passed }) => all || !passed);
  const counted = checks.filter(({ mute }) => !mute);
  const failures = counted.filter(({ passed }) => !passed);
  const verdict = failures.length === 0 ? 'none' : String(failures.length);
  const last = `${verdict} of ${count(counted.length, 'check')} failed; looked at ${plainText(last_update)}`;
  return [...shown.map((check) => findingText(check, paint)), last].join('\n\n').concat('\n');
}

function findingText({ id, category, description, passed, mute, fixes }: Finding, paint: Style): string {
  const word = passed ? paint.good('passed') : paint.bad('failed');
  const muted = mute ? ` ${paint.dim('(muted)')}` : '';
  const lines = [plainText(description), ...fixes.map((fix) => `- ${plainText(fix.description)}`)];
  return [
    `${word}  ${paint.bold(plainText(id))}  ${plainText(category)}${muted}`,
    ...lines.map((line) => `        ${line}`),
  ].join('\n');
}
