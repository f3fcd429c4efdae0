import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Sets the title of the terminal, erases the screen, and reverses what follows. */
const EVIL = 'a\u001b]0;x\u0007\u001b[2J\u009b2J\u202eb';
const ESCAPED = 'a\\u001b]0;x\\u0007\\u001b[2J\\u009b2J\\u202eb';
const LOCKED_WITHOUT_VALUE =
  'apiVersion: rdctl/v1\nkind: Profile\nsettings: { version: 19 }\nlocked: { kubernetes: { version: true } }\n';

const tool = builtTool();

test.runIf(process.platform !== 'win32')(
  'a name of a file reaches no terminal as it is, and our colors do',
  async () => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, `${EVIL}.yaml`), LOCKED_WITHOUT_VALUE);
    const env = { HOME: cwd, RDCTL_HOME: join(cwd, 'home'), FORCE_COLOR: '1' };
    const { exit, out, err } = await rdctlProgram(['validate', '-f', `${EVIL}.yaml`], {
      entry: tool.entry(),
      cwd,
      env,
    });
    expect(exit).toBe(0);
    expect(err).toContain(`${ESCAPED}.yaml: valid `);
    expect(err).toContain('\u001b[33mwarning:\u001b[39m ');
    const rest = ['\n', '\u001b[33m', '\u001b[39m'].reduce((text, ours) => text.replaceAll(ours, ''), out + err);
    expect(rest).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  },
);

test('a document is written to a pipe byte for byte', async () => {
  const cwd = temporaryDirectory();
  const env = { HOME: cwd, RDCTL_HOME: join(cwd, 'home') };
  const stdin = `# a\u202eb 日本\n${LOCKED_WITHOUT_VALUE}`;
  const ended = await rdctlProgram(['profile', 'upgrade', '-'], { entry: tool.entry(), cwd, env, stdin });
  expect(ended.out).toBe(stdin);
});
