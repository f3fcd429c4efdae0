import { type ChildProcess, fork, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileName, ownTarget } from '../release/targets.ts';
import { paired, type Result, result } from './measure.ts';

/** The built tool; `npm run build` makes it. */
export const TOOL = resolve('dist/rdctl.cjs');
const BUILT = [process.execPath, TOOL];

/** Program and first arguments of the standalone file for this computer; absent unless `npm run dist` has made it. */
export function standaloneTool(): readonly string[] | undefined {
  const target = ownTarget();
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const file = target && resolve('out', fileName(version, target));
  return file !== undefined && existsSync(file) ? [file] : undefined;
}

/**
 * The environment of every measured process: without the variable that triples start-up on Node 20, and without those that
 * could name a service of the user.
 */
export function cleanEnv(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const dropped = (name: string) =>
    name.startsWith('RDCTL_') || name === 'NODE_EXTRA_CA_CERTS' || name === 'NODE_OPTIONS';
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !dropped(name))), ...extra };
}

/** Starts a program and resolves with its exit status and what it printed. */
export function finish(words: readonly string[], env: NodeJS.ProcessEnv): Promise<{ status: number; output: string }> {
  return new Promise((done, fail) => {
    const [program = '', ...argv] = words;
    const child = spawn(program, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.once('error', fail);
    child.once('close', (status) => done({ status: status ?? -1, output }));
  });
}

/** A service of the simulated driver on a home of its own. */
export interface BenchService extends AsyncDisposable {
  env: NodeJS.ProcessEnv;
  pid: number;
}

/** Applies the profile once with the tool, so that a service of it runs and has converged. */
export async function startService(profile: string, tool: readonly string[] = BUILT): Promise<BenchService> {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-bench-'));
  const env = cleanEnv({ RDCTL_HOME: home });
  const { status, output } = await finish([...tool, 'apply', '-f', profile, '--driver', 'simulated'], env);
  if (status !== 0) throw new Error(`could not start the service to measure: ${output}`);
  const { pid } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  return {
    env,
    pid,
    async [Symbol.asyncDispose]() {
      await finish([...tool, 'shutdown'], env);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Resident memory of a process in MiB. */
export function residentMiB(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1]) / 1024;
}

/** Ends a child and waits for it. */
export async function end(child: ChildProcess): Promise<void> {
  const closed = new Promise((done) => child.once('close', done));
  child.kill('SIGTERM');
  await closed;
}

/** Milliseconds from spawn to exit. Throws when the exit status is another than expected. */
export function spawnTime(words: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((done, fail) => {
    const [program = '', ...argv] = words;
    const start = process.hrtime.bigint();
    const child = spawn(program, argv, { env, stdio: 'ignore' });
    child.once('error', fail);
    child.once('exit', (status) => {
      if (status === 0) done(Number(process.hrtime.bigint() - start) / 1e6);
      else fail(new Error(`${words.join(' ')} exited with ${status}`));
    });
  });
}

/** What a command may take, as a ratio to bare Node: of the built tool, and of the standalone file. */
const START_UP = [
  { name: 'version', aims: [1.3, 0.6] },
  { name: 'completion', aims: [1.5, 0.7] },
  { name: 'list-settings', aims: [1.5, 0.65] },
  { name: 'plan', aims: [2.3, 1.4] },
  { name: 'no-op apply', aims: [2.5, 1.6] },
] as const;

function wordsOf(name: (typeof START_UP)[number]['name'], profile: string): readonly string[] {
  if (name === 'completion') return ['__complete', 'set', '--container-engine.name', ''];
  if (name === 'plan') return ['plan', '-f', profile];
  if (name === 'no-op apply') return ['apply', '-f', profile];
  return [name];
}

/** Start-up of five commands against `node -e 0`. The service runs and has converged to the profile. */
export async function startUp(
  service: BenchService,
  profile: string,
  rounds: number,
  standalone?: readonly string[],
): Promise<Result[]> {
  const results: Result[] = [];
  for (const { name, aims } of START_UP) {
    const argv = wordsOf(name, profile);
    const subject = () => spawnTime([...(standalone ?? BUILT), ...argv], service.env);
    await subject();
    const figures = await paired(rounds, subject, () => spawnTime([process.execPath, '-e', '0'], cleanEnv()));
    results.push(
      result({
        name: `${standalone ? 'one file' : 'start-up'}: ${name}`,
        compared: `${standalone ? 'the standalone rdctl' : 'rdctl'} ${argv[0]} / node -e 0`,
        ...figures,
        aim: { sign: '<=', value: aims[standalone ? 1 : 0] },
        unit: 'ms',
        rounds,
      }),
    );
  }
  return results;
}

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
      aim: { sign: '<=', value: 1.2 },
      unit: 'MiB',
      rounds,
    }),
  ];
}
