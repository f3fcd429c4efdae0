import { realpathSync } from 'node:fs';
import { delimiter, dirname, isAbsolute } from 'node:path';
import type { UnitContent } from '../../../src/features/service-units/unit-files.ts';
import { shellLine } from '../../../src/os/program.ts';
import { exposureOf, refuseExposed, type Trust, trustOfSystem, trustOfUser } from '../../../src/state/ownership.ts';

/** The search path when none of its directories can stay. */
const SYSTEM_PATH = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/**
 * Refuses a unit that would run a program that another user can replace. A unit of the whole computer may only use paths that root owns, even after a
 * boot, including its PATH and HOME. A unit of a user is checked for the program, as in an upgrade; its PATH is the one of that user's shells.
 * @param again the command line for another attempt with `--system`.
 * @throws RdError `ERR_NOT_PRIVATE` naming the directory or file, its owner and mode.
 */
export function refuseExposedUnit(
  { command, environment }: UnitContent,
  { system, again }: { system: boolean; again: readonly string[] },
): void {
  const trust: Trust = system ? { ...trustOfSystem(), afterBoot: true } : trustOfUser();
  const who = system ? 'root' : 'you';
  const programs = command.filter(isAbsolute);
  refuseExposed(programs.flatMap(withDirectory), {
    trust,
    because: `so a unit that runs ${programs.at(-1)} may run something else as ${who}`,
    otherwise: `Install the program and all that runs it where only ${system ? 'root' : 'you or root'} can write, such as /usr/local/bin, and run it from there`,
  });
  if (!system) return;
  refuseExposed(environment.HOME ? [environment.HOME] : [], {
    trust,
    because: 'so a unit with this HOME may obey files of others as root',
    otherwise: 'Run it with `sudo -H`, which sets the home of root',
  });
  const entries = (environment.PATH ?? '').split(delimiter).filter((entry) => entry !== '');
  const kept = entries.filter((entry) => exposureOf(entry, trust) === undefined);
  const path = (kept.length === 0 ? SYSTEM_PATH : kept).join(delimiter);
  refuseExposed(entries, {
    trust,
    because: 'so a unit with it in its PATH may run programs of others as root',
    otherwise: `Leave it out, as root: \`${shellLine(['env', `PATH=${path}`, ...again])}\``,
  });
}

/** Returns the program with the directory that really contains it, where a sticky bit protects nothing. */
function withDirectory(program: string): string[] {
  return [dirname(realPath(program)), program];
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The program cannot be run either, which the service manager reports.
    return path;
  }
}
