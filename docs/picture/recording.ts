import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A command as it is typed, and everything that it printed, colors included. */
export interface Shot {
  command: string;
  printed: string;
}

/** What the picture does not show: the desktop that the plan is made against. */
const BEFORE = 'rdctl apply -f examples/moby.yaml --driver simulated';
const SHOWN = [
  'rdctl plan -f examples/containerd.yaml',
  'rdctl apply -f examples/containerd.yaml',
  'rdctl apply -f examples/containerd.yaml',
];
/** Containers and images, so that there is something to interrupt. */
const WORKLOAD = 'containers=2,images=5';

/** Runs the tool, whose program and first arguments `tool` is, on a simulated desktop in an empty home; returns what a terminal would show. */
export async function record(tool: readonly string[]): Promise<Shot[]> {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-picture-'));
  const env = {
    PATH: process.env.PATH,
    RDCTL_HOME: home,
    RDCTL_SIMULATED_WORKLOAD: WORKLOAD,
    FORCE_COLOR: '1',
  };
  const words = tool.map((word) => `'${word}'`).join(' ');
  const run = async (command: string): Promise<Shot> => {
    const printed = await output(command.replace(/^rdctl/, words), env);
    return { command, printed: printed.replaceAll(home, '~/.local/share/rdctl') };
  };
  try {
    await run(BEFORE);
    const shots: Shot[] = [];
    for (const command of SHOWN) shots.push(await run(command));
    return shots;
  } finally {
    await run('rdctl shutdown');
    rmSync(home, { recursive: true, force: true });
  }
}

/** Both streams in one, as a terminal shows them. */
function output(command: string, env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((done, fail) => {
    execFile('sh', ['-c', `exec 2>&1; ${command}`], { env }, (error, stdout) => {
      if (error) fail(new Error(`${command}: ${stdout}`, { cause: error }));
      else done(stdout);
    });
  });
}
