import { existsSync } from 'node:fs';
import { homeService, isEnding } from '../src/client/home-service.ts';
import { runningService } from '../src/client/session/find.ts';
import { placesOf } from '../src/client/session/home.ts';
import type { Caller } from './command.ts';
import { type DriverReport, driverLines, driverReports } from './commands/doctor/drivers.ts';
import { statusText } from './views/status-text.ts';
import { style } from './views/text.ts';

/** Returns the text for a person's first minute: the status of a running service, or how to start one. */
export async function firstMinute(caller: Caller): Promise<string> {
  const { io } = caller;
  const service = await runningService(caller);
  if (service) return statusText(service.status, style(io.color));
  const here = placesOf(io);
  if (existsSync(here.stateFile)) return isEnding(await homeService(here)) ? STOPPED.replace(NONE, ENDING) : STOPPED;
  return firstMinuteText(await driverReports(io));
}

const COMMANDS = 'All commands:          rdctl --help';

const NONE = 'No service is running.';
const ENDING = 'The last service is ending.';
const STOPPED = `${NONE}
Start it again:        rdctl up
What was changed:      rdctl history
${COMMANDS}
`;

/** Lists the drivers, their missing dependencies, and the command to type. */
export function firstMinuteText(reports: readonly DriverReport[]): string {
  const first = reports.find(({ usable }) => usable);
  const next = first ? 'Start an engine:       rdctl up' : 'Without an engine:     rdctl up --or-simulate';
  return [
    `Nothing has run here yet. ${first ? `The first start uses ${first.name}.` : 'No driver can run yet:'}`,
    ...driverLines(reports),
    next,
    'Write a profile:       rdctl init',
    COMMANDS,
    '',
  ].join('\n');
}
