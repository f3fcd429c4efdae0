import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl, rdctlProgram } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { type Row, WITH_A_SERVICE, WITHOUT_A_SERVICE } from './command-rows.ts';

/** The failed expectations, one line each. */
async function failing(rows: readonly Row[], env: Record<string, string>): Promise<string[]> {
  const found: string[] = [];
  const cwd = temporaryDirectory();
  for (const [argv, exit, out, err] of rows) {
    const outcome = await rdctl(argv, { env, cwd });
    const wrong = [
      ...(outcome.exit === exit ? [] : [`exit ${outcome.exit}, not ${exit}`]),
      ...(holds(outcome.out, out) ? [] : [`stdout ${JSON.stringify(outcome.out)}, not ${String(out)}`]),
      ...(holds(outcome.err, err) ? [] : [`stderr ${JSON.stringify(outcome.err)}, not ${String(err)}`]),
    ];
    if (wrong.length > 0) found.push(`rdctl ${argv.join(' ')}: ${[...wrong, JSON.stringify(outcome)].join('; ')}`);
  }
  return found;
}

function holds(text: string, expected: string | RegExp): boolean {
  return typeof expected === 'string' ? text === expected : expected.test(text);
}

test('without a service', async () => {
  const env = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated' };
  expect(await failing(WITHOUT_A_SERVICE, env)).toEqual([]);
});

describe('with a service', () => {
  const tool = builtTool();

  /** A simulated desktop in its own process, so that commands can wait for its exit. */
  async function desktop(): Promise<Record<string, string>> {
    const env = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
    const program = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
    onTestFinished(async () => void (await program('shutdown')));
    expect(await program('start', '--wait')).toMatchObject({ exit: 0 });
    return env;
  }

  test('with the simulated driver', async () => {
    expect(await failing(WITH_A_SERVICE, await desktop())).toEqual([]);
  }, 120_000);

  test.each([
    [['reset', '--factory']],
    [['reset', '--factory', '--cache', '--yes']],
    [['factory-reset', '--remove-kubernetes-cache']],
  ])('%j removes everything', async (argv) => {
    const env = await desktop();
    const { exit, out, err } = await rdctl(argv, { env });
    expect({ exit, out }).toEqual({ exit: 0, out: '' });
    expect(err.startsWith(`Command "factory-reset" is deprecated, Use 'rdctl reset --factory' instead.\n`)).toBe(
      argv[0] === 'factory-reset',
    );
    expect(existsSync(join(env.RDCTL_HOME ?? '', 'config', 'settings.json'))).toBe(false);
    expect((await rdctl(['list-settings'], { env })).exit).toBe(1);
  });
});

/** The command tables of the specification and of the compatible tool, including hidden commands. */
const PROMISED = [
  'api',
  'completion bash',
  'completion fish',
  'completion powershell',
  'completion zsh',
  'create-profile',
  'extension install',
  'extension list',
  'extension ls',
  'extension uninstall',
  'factory-reset',
  'help',
  'info',
  'internal process wait-kill',
  'list-settings',
  'paths',
  'reset',
  'set',
  'setup',
  'shell',
  'shutdown',
  'snapshot create',
  'snapshot delete',
  'snapshot list',
  'snapshot ls',
  'snapshot restore',
  'snapshot unlock',
  'start',
  'version',
];

test('every command has rows', () => {
  const lines = [...WITHOUT_A_SERVICE, ...WITH_A_SERVICE].map(([argv]) => argv.join(' '));
  const rowed = (name: string) => lines.some((line) => line === name || line.startsWith(`${name} `));
  expect(PROMISED.filter((name) => name !== 'factory-reset' && !rowed(name))).toEqual([]);
  expect(COMMANDS.map(({ name }) => name).filter((name) => name !== 'factory-reset' && !rowed(name))).toEqual([]);
});
