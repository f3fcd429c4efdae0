import { noteOtherApplication } from '../../src/client/rancher-desktop/index.ts';
import { homeOf } from '../../src/client/session/home.ts';
import type { HomeLogs, LogName, LogPlace } from '../../src/drivers/log-places.ts';
import { RdError } from '../../src/errors.ts';
import { defined } from '../../src/json.ts';
import { systemClock } from '../../src/os/clock.ts';
import type { LineSelection } from '../../src/os/log-lines.ts';
import { isThere } from '../../src/os/regular-file.ts';
import { machineOf } from '../arguments/machine.ts';
import { quote, usage } from '../arguments/values.ts';
import { defineCommand, type Io } from '../command.ts';
import { logLineJson, logLineText, timeOfLine } from '../views/log-text.ts';
import { style } from '../views/text.ts';

/** Lines shown without `-n` and `--since`. */
const LAST = 100;
/** Exit code of an interrupted command. */
const INTERRUPTED = 130;

export const logs = defineCommand({
  name: 'logs',
  summary: 'Show the logs of service, engine, machine and cluster',
  usage: '[LOG]',
  description: `Prints the last ${LAST} lines of a log: service (default), engine, machine (the console of the virtual machine) or
cluster. The log of a program has its name: dockerd, moby-containerd, containerd, qemu; output is what a service in the
background prints. No service has to run. Logs in a virtual machine can be read while it is on.
Times are those of this computer; with -o json each line is a JSON object with its time as it is in the log.
With -f, it goes on until Ctrl-C, also when a log is rotated.
Exit codes: 130 after Ctrl-C; 1 there is no such log.

  rdctl logs -f
  rdctl logs engine --since 10m`,
  flags: {
    follow: { type: 'boolean', short: 'f', summary: 'Print new lines as they are written' },
    since: { type: 'duration', summary: 'Only lines of this time, such as 10m' },
    lines: { type: 'integer', short: 'n', summary: `Only the last lines (default ${LAST}, with --since all)` },
    output: { type: 'string', short: 'o', summary: 'Output format', values: ['text', 'json'] },
  },
  classic: false,
  async run({ args, flags, globals, io }) {
    const [name = 'service', ...more] = args;
    if (more.length > 0) throw usage('logs takes one log');
    const { lines, since, follow = false } = flags;
    if (lines !== undefined && lines < 0) throw usage('--lines must not be negative');
    const here = homeOf(io);
    await noteOtherApplication(
      { globals, io },
      'Its logs are not read; these are of what rdctl itself has run here. `RDCTL_COMPAT=rancher-desktop rdctl paths` names the directory of its logs.',
    );
    const { homeLogs } = await import('../../src/drivers/log-places.ts');
    const home = await homeLogs(here);
    const place = await placeOf(name, home);
    const last = lines ?? (since === undefined ? LAST : undefined);
    const selection = { ...defined({ last }), ...sinceOf(since, place, name) };
    const found = place.in === 'host' ? readHere(place, selection, follow, io) : readThere(place, selection, flags, io);
    const read = await found;
    if (!read) throw await notWritten(name, place, home);
    const paint = style(io.color);
    const text = (line: string) =>
      flags.output === 'json' ? logLineJson(place.times, line) : logLineText(place.times, line, paint);
    return print(read, text, follow, io);
  },
});

type Lines = AsyncIterable<string> | undefined;

async function readHere({ files }: LogPlace, selection: LineSelection, follow: boolean, io: Io): Promise<Lines> {
  const { readLog } = await import('../../src/os/log-reader.ts');
  return readLog(files, selection, follow ? { signal: io.signal, clock: systemClock } : undefined);
}

async function readThere(
  { files }: LogPlace,
  selection: LineSelection,
  { follow = false, lines, since }: { follow?: boolean; lines?: number; since?: number },
  io: Io,
): Promise<Lines> {
  if (follow && lines !== undefined && since !== undefined) {
    throw usage('for a log in the virtual machine, --follow takes either --since or --lines');
  }
  const { access } = await machineOf(io, 'Its logs are on this computer.');
  const { readGuestLog } = await import('./logs/guest.ts');
  return readGuestLog(access, files, { selection, follow, io });
}

/** Prints until the end; with `follow`, until Ctrl-C or until nobody reads the output. */
async function print(
  lines: AsyncIterable<string>,
  text: (line: string) => string,
  follow: boolean,
  io: Io,
): Promise<number> {
  try {
    for await (const line of lines) {
      io.out(`${text(line)}\n`);
      if (io.closed) return 0;
    }
  } catch (error) {
    if (!follow || !io.signal.aborted) throw error;
  }
  return follow && io.signal.aborted ? INTERRUPTED : 0;
}

function sinceOf(ms: number | undefined, { times }: LogPlace, name: string): Pick<LineSelection, 'since'> {
  if (ms === undefined) return {};
  if (times === 'none')
    throw usage(`the lines of the log ${quote(name)} have no times`, 'Use --lines instead of --since.');
  return { since: { time: systemClock.now() - ms, timeOf: (line) => timeOfLine(times, line) } };
}

/** Returns the place of a log. Throws `ERR_NOT_FOUND` for one that this home cannot have, `ERR_USAGE` for an unknown name. */
async function placeOf(name: string, home: HomeLogs): Promise<LogPlace> {
  const { LOGS } = await import('../../src/drivers/log-places.ts');
  const known = Object.hasOwn(LOGS, name) ? (name as LogName) : undefined;
  const place = known && home.logs[known];
  if (place) return place;
  const advice = await existing(home);
  if (!known) throw usage(`there is no log called ${quote(name)}`, advice);
  throw new RdError('ERR_NOT_FOUND', `There is no log ${quote(name)} here: ${reasonFor(home)}.`, { advice });
}

async function notWritten(name: string, { files: [file = ''] }: LogPlace, home: HomeLogs): Promise<RdError> {
  return new RdError('ERR_NOT_FOUND', `The log ${quote(name)} has not been written yet: there is no ${file}.`, {
    advice: await existing(home),
  });
}

function reasonFor({ driver }: HomeLogs): string {
  if (driver === undefined) return 'no service has run in this home';
  if (driver === 'simulated') return 'the desktop is simulated, so only its service has logs';
  return `the ${driver} driver has neither a virtual machine nor a cluster`;
}

/** Names the logs that can be read now, in a sentence. */
async function existing({ logs: places }: HomeLogs): Promise<string> {
  const names: string[] = [];
  for (const [name, { files, in: where }] of Object.entries(places)) {
    if (where === 'machine' || (await isThere(files[0] ?? ''))) names.push(name);
  }
  return names.length === 0 ? 'Start a service with: rdctl start' : `Logs of this home: ${names.join(', ')}.`;
}
