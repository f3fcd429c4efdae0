import { runningService } from '../../../src/client/session/find.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import { escapeHidden } from '../../../src/settings/printable.ts';
import type { Caller } from '../../command.ts';
import { type DriverReport, driverReports } from '../doctor/drivers.ts';
import { nextDriver } from '../plan/next-driver.ts';

const SIMULATED = 'simulated';

/**
 * Returns the driver for `--or-simulate`: `simulated` if nothing has run and no real driver can; undefined leaves the choice to the service. Prints a
 * notice about a simulation, and how to make it real.
 */
export async function realOrSimulated(caller: Caller, profile: string | undefined): Promise<string | undefined> {
  const { io } = caller;
  const used = await usedDriver(caller);
  // An explicitly named driver is used.
  if (used === undefined ? Boolean(io.env.RDCTL_DRIVER) : used !== SIMULATED) return undefined;
  if (used === undefined && (await nextDriver(io, undefined, undefined)).driver !== undefined) return undefined;
  io.err(`${simulationLine(await driverReports(io), profile)}\n`);
  return used ?? SIMULATED;
}

async function usedDriver(caller: Caller): Promise<string | undefined> {
  const service = await runningService(caller);
  if (service) return service.status.driver.name;
  const { readRecordedState } = await import('../../../src/client/offline.ts');
  return (await readRecordedState(homeOf(caller.io))).driver;
}

/** Formats a notice on one line, with the one command that makes the simulation real. */
export function simulationLine(reports: readonly DriverReport[], profile: string | undefined): string {
  const up = `rdctl up${profile === undefined ? '' : ` ${shellWord(profile)}`}`;
  const usable = reports.find((each) => each.usable);
  if (usable) {
    return `notice: SIMULATED, although ${usable.name} can run here now. To make it real: rdctl reset --factory && ${up}`;
  }
  const why = 'notice: SIMULATED, because no engine can run here yet.';
  const [fix] = reports.flatMap(({ fix, copyable }) => (fix && copyable ? [fix] : [])).sort(shortest);
  if (fix === undefined) return `${why} To see what is missing: rdctl doctor`;
  // Root has a home of its own, in which nothing has run.
  if (OF_ROOT.test(fix)) return `${why} To make it real: ${fix.replace(OF_ROOT, `sudo ${up}`)}`;
  // The order matters: the reset removes guest images, too.
  return `${why} To make it real: rdctl reset --factory && ${fix} && ${up}`;
}

const OF_ROOT = /sudo rdctl up$/;

/** Compares fixes: those that leave the desktop to the same user come first, then shorter ones. */
function shortest(a: string, b: string): number {
  return Number(OF_ROOT.test(a)) - Number(OF_ROOT.test(b)) || a.length - b.length;
}

function shellWord(text: string): string {
  return /^[\w./~+@%,:=-]+$/.test(text) ? text : `'${escapeHidden(text).replaceAll("'", "'\\''")}'`;
}
