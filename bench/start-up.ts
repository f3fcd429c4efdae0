import { spawn } from 'node:child_process';
import { paired, type Result, result } from './measure.ts';
import { type BenchService, cleanEnv, TOOL } from './service.ts';

/** Milliseconds from spawn to exit. Throws when the exit status is another than expected. */
function spawnTime(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((done, fail) => {
    const start = process.hrtime.bigint();
    const child = spawn(process.execPath, argv, { env, stdio: 'ignore' });
    child.once('error', fail);
    child.once('exit', (status) => {
      if (status === 0) done(Number(process.hrtime.bigint() - start) / 1e6);
      else fail(new Error(`${argv.join(' ')} exited with ${status}`));
    });
  });
}

/** Start-up of five commands against `node -e 0`. The service runs and has converged to the profile. */
export async function startUp(service: BenchService, profile: string, rounds: number): Promise<Result[]> {
  const commands = [
    { name: 'start-up: version', argv: ['version'], aim: 1.3 },
    { name: 'start-up: completion', argv: ['__complete', 'set', '--container-engine.name', ''], aim: 1.5 },
    { name: 'start-up: list-settings', argv: ['list-settings'], aim: 1.7 },
    { name: 'start-up: plan', argv: ['plan', '-f', profile], aim: 2.6 },
    { name: 'start-up: no-op apply', argv: ['apply', '-f', profile], aim: 2.6 },
  ];
  const results: Result[] = [];
  for (const { name, argv, aim } of commands) {
    const subject = () => spawnTime([TOOL, ...argv], service.env);
    await subject();
    const figures = await paired(rounds, subject, () => spawnTime(['-e', '0'], cleanEnv()));
    results.push(
      result({
        name,
        compared: `rdctl ${argv[0]} / node -e 0`,
        ...figures,
        aim: { sign: '<=', value: aim },
        unit: 'ms',
        rounds,
      }),
    );
  }
  return results;
}
