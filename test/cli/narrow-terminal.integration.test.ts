import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { commandOf } from '../helpers/tool-program.ts';

/** Columns of the terminal. */
const WIDTH = 60;
/** Two gaps in a row of text. */
const TABLE = /\S {2,}\S.*\S {2,}\S/;
/** One word, or one command in backticks, with what ends a sentence. */
const ONE_WORD = /^ *(?:`[^`]+`|\S+)[.,;:]*$/;

const script = '/usr/bin/script';

describe.skipIf(!existsSync(script))(`on a terminal of ${WIDTH} columns`, () => {
  test('where nothing runs', async () => {
    const { screen, file } = terminal();
    const wrong = file('wrong.yaml', 'version: 19\nkubernetes: { enabled: maybe, verson: 1.29.4 }\nstate: startedd\n');
    const shown = await screen([
      '',
      'doctor',
      'status',
      'diagnostics',
      'kept',
      'plan -f examples/moby.yaml',
      `plan -f ${wrong}`,
      `validate -f ${wrong}`,
      'apply',
      'apply --frob',
      'up missing.yaml',
      'upp',
      'token list',
      '--help',
      'apply --help',
      'snapshot --help',
    ]);
    expect(shown).toContain('Nothing has run here yet.');
    expect(shown).toMatch(/did\s+you\s+mean\s+version\?/);
    expect(shown.split('\n').filter(isTooLong)).toEqual([]);
  });

  test('where the desktop runs, as its profile says and not', async () => {
    const { screen, file } = terminal();
    const team = file(
      'team.yaml',
      'apiVersion: rdctl/v1\nkind: Profile\nmetadata: { name: team }\nwatch: { heal: warn }\nstate: started\nsettings:\n  version: 19\n  virtualMachine: { memoryInGB: 3 }\n  kubernetes: { enabled: false }\n',
    );
    const shown = await screen([
      `apply -f ${team} --keep`,
      'status',
      'doctor',
      'diagnostics --run --all',
      'up',
      // Its answer is that of Rancher Desktop's `rdctl`.
      'set --virtual-machine.memory-in-gb 4 > /dev/null',
      'kept',
      'status',
      `diff -f ${team}`,
      `plan -f ${team}`,
      'plan -f examples/containerd.yaml',
      'up --driver host',
      'explain virtualMachine.memoryInGB',
      'down',
    ]);
    expect(shown).toContain('Converged in');
    expect(shown).toContain('team: drift');
    expect(shown).toContain('~ virtualMachine.memoryInGB');
    expect(shown.split('\n').filter(isTooLong)).toEqual([]);
  });

  test('where the engine fails', async () => {
    const { screen } = terminal({ RDCTL_SIMULATED_FAULTS: 'engine.start:terminal' });
    const shown = await screen(['up', 'status', 'up examples/containerd.yaml', 'history show 2', 'down']);
    expect(shown).toContain('Error: The backend did not reach the desired state');
    expect(shown.split('\n').filter(isTooLong)).toEqual([]);
  });
});

/** The tool on an empty home, in a terminal. */
function terminal(more: Record<string, string> = {}) {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-narrow-'));
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, SHELL: '/bin/sh', TERM: 'xterm', RDCTL_HOME: join(home, 'rdctl') },
    ...{ RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0', RDCTL_CONNECTIVITY_URL: 'http://127.0.0.1:9/' },
    ...more,
  };

  /** What the commands show, one after the other. */
  async function screen(commands: readonly string[]): Promise<string> {
    const lines = commands.map((command) => `${commandOf().join(' ')} ${command}`);
    const child = spawn(script, ['-qec', `stty cols ${WIDTH}; ${lines.join('; ')}`, '/dev/null'], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [shown] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    return withoutControls(shown);
  }

  onTestFinished(async () => {
    await screen(['shutdown']);
    rmSync(home, { recursive: true, force: true });
  });
  return {
    screen,
    file(name: string, content: string): string {
      const path = join(home, name);
      writeFileSync(path, content);
      return path;
    },
  };
}

/** As the terminal shows it in the end: without colors, and without what was overwritten. */
function withoutControls(shown: string): string {
  const lines = shown.replaceAll('\r\n', '\n').split('\n');
  return lines.map((line) => line.slice(line.lastIndexOf('\r') + 1).replace(/\p{Cc}\[[\d;]*[A-Za-z]/gu, '')).join('\n');
}

function isTooLong(line: string): boolean {
  return line.length > WIDTH && !TABLE.test(line) && !ONE_WORD.test(line);
}
