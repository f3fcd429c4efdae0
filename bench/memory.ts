import { fork } from 'node:child_process';
import { paired, type Result, result } from './measure.ts';
import { cleanEnv, end, residentMiB, startService } from './service.ts';

/** How long both servers rest before they are looked at. */
const REST_MS = 3000;

const rest = () => new Promise((done) => setTimeout(done, REST_MS));

/** Resident memory of an idle service with the simulated driver against an empty fastify. */
export async function memory(profile: string, rounds: number): Promise<Result[]> {
  const subject = async () => {
    await using service = await startService(profile);
    await rest();
    return residentMiB(service.pid);
  };
  const reference = async () => {
    const child = fork('bench/fastify-server.mjs', { env: cleanEnv() });
    await new Promise((done) => child.once('message', done));
    await rest();
    const resident = residentMiB(child.pid ?? 0);
    await end(child);
    return resident;
  };
  const figures = await paired(rounds, subject, reference);
  return [
    result({
      name: 'memory: idle service',
      compared: 'resident memory of the service / of an empty fastify',
      ...figures,
      aim: { sign: '<=', value: 1.5 },
      unit: 'MiB',
      rounds,
    }),
  ];
}
