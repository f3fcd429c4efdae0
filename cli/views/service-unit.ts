import type { UnitState } from '../../src/features/service-units/manager.ts';
import { plainText } from './text.ts';

const OWNERS = { install: '', package: ' (of a package)', other: ' (not created by rdctl)' } as const;

/** Describes the unit in force; without one, explains how the service starts. */
export function unitText(state: UnitState, { system, name }: { system: boolean; name: string }): string {
  const when = system ? 'at boot' : 'at login';
  const install = system ? 'sudo rdctl service install --system' : 'rdctl service install';
  const { unit, from, packaged, enabled, onFirstUse, active, pid } = state;
  if (from === undefined) return `Not installed. \`${install}\` starts it ${when}.\n`;
  const running = active ? `running${pid === undefined ? '' : ` (pid ${pid})`}` : 'not running';
  const lines = [
    `${plainText(unit)}${OWNERS[from]}`,
    `${enabled ? `Enabled${onFirstUse ? ' on first use' : ''}` : 'Not enabled'}; ${running}.`,
  ];
  if (packaged !== undefined) lines.push(`It comes before ${packaged}, which is not used.`);
  if (!enabled) {
    const enable =
      from === 'install' ? install : `${system ? 'sudo systemctl' : 'systemctl --user'} enable --now ${name}`;
    lines.push(`\`${enable}\` starts it ${when}.`);
  }
  return `${lines.join('\n')}\n`;
}

/** Describes the changes of an installation. `running` is the pid of the service that ran before. */
export function installedText(
  { unit, packaged, onFirstUse, pid }: UnitState,
  { system, running }: { system: boolean; running: number | undefined },
): string {
  const when = onFirstUse ? 'when first used' : system ? 'at boot' : 'at login';
  const lines = [`Installed ${plainText(unit)}; the service starts ${when} and after a crash.`];
  if (packaged !== undefined) lines.push(`It comes before ${packaged}, which is no longer used.`);
  if (running !== undefined) lines.push(runningText(running === pid, onFirstUse === true));
  return `${lines.join('\n')}\n`;
}

function runningText(isPart: boolean, onFirstUse: boolean): string {
  if (isPart && onFirstUse)
    return 'The service keeps running. To have it start on first use before the next login or boot: rdctl shutdown, and install again.';
  if (isPart) return 'The service keeps running; what was changed counts from its next start.';
  if (onFirstUse) return 'The running service is not part of it; after `rdctl shutdown` it starts on first use.';
  return 'The running service is not part of it. To change that: rdctl shutdown, and install again.';
}
