import { existsSync } from 'node:fs';
import { placesOf } from '../src/client/session/home.ts';
import type { Io } from './command.ts';
import { type DriverReport, driverLines, driverReports } from './commands/doctor/drivers.ts';

/** What to do on a computer where nothing has run yet; undefined once a service has. */
export async function firstMinute(io: Io): Promise<string | undefined> {
  if (existsSync(placesOf(io).stateFile)) return undefined;
  return firstMinuteText(await driverReports(io));
}

/** The drivers, what they miss, and the command to type. */
export function firstMinuteText(reports: readonly DriverReport[]): string {
  const first = reports.find(({ usable }) => usable);
  const next = first ? `Start an engine:       rdctl up` : `Try it without engine: rdctl up --driver simulated`;
  return [
    `Nothing has run here yet. ${first ? `The first start uses ${first.name}.` : 'No driver can run yet:'}`,
    ...driverLines(reports),
    next,
    'Write a profile:       rdctl init',
    'All commands:          rdctl --help',
    '',
  ].join('\n');
}
