import { realpathSync } from 'node:fs';
import { delimiter, dirname, isAbsolute } from 'node:path';
import type { UnitContent } from '../../../src/features/service-units/unit-files.ts';
import { shellLine } from '../../../src/os/program.ts';
import { exposureOf, refuseExposed, type Trust, trustOfSystem, trustOfUser } from '../../../src/state/ownership.ts';

/** What is in the path when nothing of it can stay. */
const SYSTEM_PATH = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/**
 * Refuses a unit that would run what another user can put in its place. Of the whole computer: only what root owns, also after a boot, and in its PATH
 * and HOME as well. Of a user: the program, as for an upgrade; the PATH is the one that the shells of that user have.
 * @param again the command line for another attempt with `--system`
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

/** The program with the directory that it is really in, where a sticky bit protects nothing. */
function withDirectory(program: string): string[] {
  return [dirname(realPath(program)), program];
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // It cannot be run either, which the service manager reports.
    return path;
  }
}
