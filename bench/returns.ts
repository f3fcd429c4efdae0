import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { host } from '../src/drivers/index.ts';
import { refusingDockerd } from '../test/helpers/refusing-dockerd.ts';
import { compare, type Result, result } from './measure.ts';
import { cleanEnv, finish, TOOL } from './service.ts';

const CLASSIC = { version: 19, containerEngine: { mobyStorageDriver: 'classic' } };
/** What an automatic rollback may take besides the start of the old engine. */
const ALLOWANCE_MS = 10_000;

/**
 * A change that dockerd refuses, until the old one runs again, against the time of that start plus ten seconds. Empty where no real engine
 * can run.
 */
export async function returns(rounds: number): Promise<Result[]> {
  if (!(await host.probe(process.env)).usable) return [];
  const home = mkdtempSync(join(tmpdir(), 'rdctl-bench-'));
  const env = cleanEnv({ RDCTL_HOME: home, PATH: `${refusingDockerd(home)}:${process.env.PATH}` });
  const rdctl = (...argv: string[]) => finish([process.execPath, TOOL, ...argv], env);
  const profile = join(home, 'classic.json');
  writeFileSync(profile, JSON.stringify(CLASSIC));
  const subjects: number[] = [];
  const references: number[] = [];
  try {
    const { status, output } = await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'host');
    if (status !== 0) throw new Error(output);
    for (let round = 0; round < rounds; round++) {
      const begun = performance.now();
      const failed = await rdctl('apply', '-f', profile);
      subjects.push(performance.now() - begun);
      if (!failed.output.includes('was undone')) throw new Error(failed.output);
      const { entries } = JSON.parse((await rdctl('history', '-o', 'json')).output);
      const phases: { name: string; ms: number }[] = entries.at(-1).outcome.phases;
      references.push((phases.findLast(({ name }) => name === 'engine start')?.ms ?? Number.NaN) + ALLOWANCE_MS);
    }
  } finally {
    await rdctl('shutdown');
    rmSync(home, { recursive: true, force: true });
  }
  return [
    result({
      name: 'return: a dockerd that refuses a change',
      compared: 'apply until the old engine runs / its start plus 10 s',
      ...compare(subjects, references),
      aim: { sign: '<=', value: 1 },
      unit: 'ms',
      rounds,
    }),
  ];
}
