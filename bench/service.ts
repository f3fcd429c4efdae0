import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** The built tool; `npm run build` makes it. */
export const TOOL = resolve('dist/rdctl.cjs');

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
function finish(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<{ status: number; output: string }> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
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
  connection: { user: string; password: string; port: number };
}

/** Applies the profile once with the built tool, so that a service runs and has converged. */
export async function startService(profile: string): Promise<BenchService> {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-bench-'));
  const env = cleanEnv({ RDCTL_HOME: home });
  const { status, output } = await finish([TOOL, 'apply', '-f', profile, '--driver', 'simulated'], env);
  if (status !== 0) throw new Error(`could not start the service to measure: ${output}`);
  const connection = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  return {
    env,
    pid: connection.pid,
    connection,
    async [Symbol.asyncDispose]() {
      await finish([TOOL, 'shutdown'], env);
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
