import { type Finding, type Findings, readFindings } from '../../src/client/diagnostics.ts';
import { requireService } from '../../src/client/session/find.ts';
import { isObject } from '../../src/json.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';
import { count, jsonText, plainText, type Style, style } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

export const diagnostics = defineCommand({
  name: 'diagnostics',
  summary: 'Show problems with the desktop and this computer',
  usage: '',
  description: `Shows the latest results of the service's checks; --run repeats the checks first. Muted checks
(setting diagnostics.mutedChecks) are left out unless diagnostics.showMuted is on.

Exit codes: 0 no failures; 2 a check that is not muted failed; 1 the results are not available.
With -o json, prints the response of \`GET /v1/diagnostic_checks\`, including passed checks.

  rdctl diagnostics --run`,
  flags: {
    run: { type: 'boolean', summary: 'Run all checks first' },
    all: { type: 'boolean', summary: 'Also show passed checks' },
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
    if (flags.output === 'json') io.out(jsonText(shown));
    else io.say(diagnosticsText(shown, flags.all === true, style(io.color)));
    return found.checks.some(({ passed, mute }) => !passed && !mute) ? 2 : 0;
  },
});

/** Formats the failed checks; with `all`, every check. Muted ones are not counted. */
export function diagnosticsText({ last_update, checks }: Findings, all: boolean, paint: Style): string {
  if (checks.length === 0) return 'No checks have run yet. Run them with `rdctl diagnostics --run`.\n';
  const shown = checks.filter(({ passed }) => all || !passed);
  const counted = checks.filter(({ mute }) => !mute);
  const failures = counted.filter(({ passed }) => !passed);
  const verdict = failures.length === 0 ? 'none' : String(failures.length);
  const last = `${verdict} of ${count(counted.length, 'check')} failed; last run ${plainText(last_update)}`;
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
