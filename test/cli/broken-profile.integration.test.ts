import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { failureIn, failureLine } from '../../src/client/session/launch.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const tool = builtTool();
const PROFILE = JSON.stringify({ version: 19, images: { showAll: false } });

test('an invalid deployment profile is one error in every command, with the classic exit code in classic commands', async () => {
  const home = temporaryDirectory();
  const config = join(home, 'xdg');
  const locked = join(config, 'rancher-desktop.locked.json');
  mkdirSync(config);
  writeFileSync(locked, '{"version":19,"kubernetes":{"enabled":"x"}}');
  const env = { RDCTL_HOME: join(home, 'rdctl'), RDCTL_DRIVER: 'simulated', XDG_CONFIG_HOME: config };
  const said = [
    `Error: Error in deployment file ${locked}:`,
    `Error for field 'kubernetes.enabled': expecting value of type boolean, got a string "x"`,
    'Fix or remove this deployment profile, which is your own; the service does not start until then.',
    '',
  ].join('\n');
  for (const [exit, ...argv] of [
    [3, 'plan', '-f', '-'],
    [3, 'explain', 'kubernetes.enabled'],
    [3, 'apply', '-f', '-'],
    [1, 'start'],
  ] as const) {
    const outcome = await rdctlProgram(argv, { entry: tool.entry(), env, stdin: PROFILE });
    expect([argv, outcome.exit]).toEqual([argv, exit]);
    expect(outcome.err.endsWith(said), outcome.err).toBe(true);
  }
  const { exit, out } = await rdctlProgram(['apply', '-f', '-', '-o', 'json'], {
    entry: tool.entry(),
    env,
    stdin: PROFILE,
  });
  expect([exit, JSON.parse(out).code]).toEqual([3, 'ERR_PROFILE_INVALID']);
  expect(readdirSync(join(home, 'rdctl'))).not.toContain('config');
});

test('the error code is only recognized at the start of the text', () => {
  const text = 'Error: this\nAdvice.\n';
  expect(failureIn(`earlier words\n${failureLine('ERR_PORT_IN_USE')}${text}`)).toEqual({
    code: 'ERR_PORT_IN_USE',
    said: text,
  });
  for (const other of ['', text, 'The service did not start: ERR_', 'The service did not start: toString\nx']) {
    expect(failureIn(other)).toBeUndefined();
  }
});
