import type { EngineStatus } from '../driver.ts';
import type { EngineArea, Program, Shell } from '../shell.ts';

/**
 * The state of an engine with a record when not all of its programs run: stopped when it left no trace, as after a restart of the
 * machine, else broken, for a stop to clear. Undefined when they all run.
 */
export async function endedPrograms(
  shell: Shell,
  programs: readonly Program[],
  area: EngineArea,
): Promise<EngineStatus | undefined> {
  const states = await Promise.all(programs.map(async ({ name }) => ({ name, ...(await shell.find(name)) })));
  const ended = states.filter(({ state }) => state !== 'running').map(({ name }) => name);
  if (ended.length === 0) return undefined;
  const message = `not running: ${ended.map((name) => `${name} (see ${name}.log)`).join(', ')}`;
  if (ended.length < programs.length) return { state: 'unresponsive', message };
  const left = await shell.leftovers(area);
  if (left.length === 0) return { state: 'stopped' };
  return { state: 'unresponsive', message: `${message}; left behind: ${summary(left)}` };
}

function summary(left: readonly string[]): string {
  const shown = left.slice(0, 3).join(', ');
  return left.length > 3 ? `${shown} and ${left.length - 3} more` : shown;
}
