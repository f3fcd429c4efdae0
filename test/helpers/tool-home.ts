import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type ChildOptions, type Outcome, rdctlProgram } from './cli.ts';

const LOG_LINES = 60;

/** The built tool on an empty home of its own; its service is shut down when the test ends. */
export interface ToolHome {
  home: string;
  rdctl(...argv: string[]): Promise<Outcome>;
  rdctlWith(options: ChildOptions, ...argv: string[]): Promise<Outcome>;
  /** The document of `status -o json`. */
  status(): Promise<{
    generation: number;
    converged: boolean;
    backendState: string;
    driver: { name: string };
    engine: { name: string; endpoint?: string };
    counters: { settingsPuts: number; settingsWrites: number; steps: number; restarts: number };
    phases: { name: string }[];
    machine: {
      state: string;
      paused?: { since: string };
      shared?: { path?: string; by?: string; missing?: string };
      accelerator?: string;
      emulatedBecause?: string;
      started?: { how: string; phases: { name: string; ms: number }[] };
    };
    ports?: { port: number; state: string; reason?: string }[];
  }>;
  /** The pid of the running service, from the connection file. */
  servicePid(): number;
}

/** Must be called inside a test. */
export function toolHome(env: Record<string, string> = {}): ToolHome {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-e2e-'));
  const rdctlWith: ToolHome['rdctlWith'] = (options, ...argv) =>
    rdctlProgram(argv, { ...options, env: { RDCTL_HOME: home, ...env, ...options.env } });
  const rdctl: ToolHome['rdctl'] = (...argv) => rdctlWith({}, ...argv);
  onTestFinished(async ({ task }) => {
    // The hook of a failed test would come after this one.
    if (task.result?.state === 'fail') process.stderr.write(`${logEnd(home)}\n`);
    await rdctl('shutdown');
    rmSync(home, { recursive: true, force: true });
  });
  return {
    home,
    rdctl,
    rdctlWith,
    status: async () => JSON.parse((await rdctl('status', '-o', 'json')).out),
    servicePid: () => JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8')).pid,
  };
}

/** What the service of a test that failed did last, and what its runtime said. */
function logEnd(home: string): string {
  const endOf = (name: string) =>
    readFileSync(join(home, 'logs', name), 'utf8')
      .split('\n')
      .slice(-LOG_LINES);
  try {
    return ['service-output.log', 'service.log'].flatMap((name) => [`${name}:`, ...endOf(name)]).join('\n');
  } catch {
    return 'The service has no log.';
  }
}

/** The built tool on a home; a remaining service is shut down. */
export function toolAt(entry: string, home: string, more: Record<string, string> = {}) {
  const env = { RDCTL_HOME: home, RDCTL_SIMULATED_LATENCY_MS: '0', ...more };
  const program = (argv: string[], stdin = '') => rdctlProgram(argv, { entry, env, stdin });
  onTestFinished(async () => void (await program(['shutdown'])));
  return program;
}
