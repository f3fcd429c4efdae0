import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A command as it is typed, and everything that it printed, colors included. */
export interface Shot {
  command: string;
  printed: string;
}

/** Commands to run in a home where nothing has run. */
export interface Story {
  /** What a screen reader says. */
  title: string;
  prompt: '$' | '#';
  /** The directory that stands for the temporary one: the user's home, or rdctl's own in it. */
  home: string;
  /** Environment variables by the path of the temporary directory. */
  env(home: string): Record<string, string>;
  /** Commands that the picture does not show. */
  before: readonly string[];
  commands: readonly string[];
}

/** A plan, and what it is made against. */
export const PLAN_AND_APPLY: Story = {
  title:
    'rdctl plan names a change, what it costs and what it interrupts; rdctl apply makes it; a second apply finds nothing to do',
  prompt: '$',
  home: '~/.local/share/rdctl',
  // Containers and images, so that there is something to interrupt.
  env: (home) => ({ RDCTL_HOME: home, RDCTL_SIMULATED_WORKLOAD: 'containers=2,images=5' }),
  before: ['rdctl apply -f examples/moby.yaml --driver simulated'],
  commands: [
    'rdctl plan -f examples/containerd.yaml',
    'rdctl apply -f examples/containerd.yaml',
    'rdctl apply -f examples/containerd.yaml',
  ],
};

/** Root on a computer that the host driver can run on, with the programs of the qemu driver but no guest image. */
export const FIRST_MINUTE: Story = {
  title:
    'rdctl alone says which drivers can run here and what to type; rdctl up starts dockerd with a profile and names the endpoint; rdctl down stops it',
  prompt: '#',
  home: '/root',
  env: (home) => ({ HOME: home }),
  before: [],
  commands: ['rdctl', 'rdctl up examples/moby.yaml', 'rdctl down'],
};

/** Runs the tool, whose program and first arguments `tool` is; returns what a terminal would show. */
export async function record(story: Story, tool: readonly string[]): Promise<Shot[]> {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-picture-'));
  const env = { PATH: process.env.PATH, FORCE_COLOR: '1', ...story.env(home) };
  const words = tool.map((word) => `'${word}'`).join(' ');
  const run = async (command: string): Promise<Shot> => {
    const printed = await output(command.replace(/^rdctl/, words), env);
    return { command, printed: printed.replaceAll(home, story.home) };
  };
  try {
    for (const command of story.before) await run(command);
    const shots: Shot[] = [];
    for (const command of story.commands) shots.push(await run(command));
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
