import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toolHome } from '../helpers/tool-home.ts';
import { commandOf } from '../helpers/tool-program.ts';

const script = '/usr/bin/script';
const PROMPT = 'Type "yes" to continue and lose this data: ';

describe.skipIf(!existsSync(script))('the prompt before data loss, on a terminal', () => {
  test('takes only what is typed after it: a word that was typed ahead, or a key of another program, loses nothing', async () => {
    const { home, rdctl } = toolHome();
    const settings = join(home, 'config', 'settings.json');
    expect((await rdctl('up', '--driver', 'simulated')).exit).toBe(0);
    expect((await rdctl('down')).exit).toBe(0);

    for (const key of ['l\n', 'y\n', '\n', '\u0004', '\u0003']) {
      const { exit, screen } = await reset(home, { ahead: 'ls -l\nyes\nyes', answer: key });
      expect(screen).toMatch(/(?:Nothing was changed|Interrupted)\.\r\n$/);
      expect(exit, screen).not.toBe(0);
      expect(existsSync(settings)).toBe(true);
    }
    const { exit, screen } = await reset(home, { ahead: 'no\n', answer: 'yes\n' });
    expect(exit, screen).toBe(0);
    expect(existsSync(settings)).toBe(false);
  });
});

/** `reset --factory` on a terminal whose buffer holds `ahead` before the tool starts. */
async function reset(home: string, { ahead, answer }: { ahead: string; answer: string }) {
  const tool = commandOf().map((word) => `'${word}'`);
  // The shell takes the first line, and then the others have come too.
  const line = `read first; exec ${tool.join(' ')} reset --factory`;
  const child = spawn(script, ['-qfec', line, '/dev/null'], {
    env: { PATH: process.env.PATH, RDCTL_HOME: home, TERM: 'xterm', SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.on('error', () => undefined);
  child.stdin.write(`first\n${ahead}`);
  let screen = '';
  let isAnswered = false;
  child.stdout.on('data', (part: Buffer) => {
    screen += part.toString();
    if (isAnswered || !screen.includes(PROMPT)) return;
    isAnswered = true;
    child.stdin.write(answer);
  });
  const [exit] = await once(child, 'close');
  return { exit, screen };
}
