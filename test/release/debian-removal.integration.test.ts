import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MAINTAINER_SCRIPTS } from '../../release/debian/control.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const SECONDS = 3;

/** The script before a removal, for a program of the test instead of the installed one, with a limit of 3 "seconds" that take no time. */
function stage() {
  const folder = realpathSync(temporaryDirectory());
  const program = join(folder, 'rdctl');
  copyFileSync(realpathSync('/bin/sh'), program);
  const script = join(folder, 'prerm');
  const text = MAINTAINER_SCRIPTS.prerm ?? '';
  expect(text.match(/left=300$/gm)).toHaveLength(1);
  writeFileSync(script, text.replaceAll('/usr/bin/rdctl', program).replace('left=300', `left=${SECONDS}`));
  const seconds = join(folder, 'seconds');
  // Nothing of this computer is changed.
  for (const name of ['systemctl', 'rm']) writeFileSync(join(folder, name), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(join(folder, 'sleep'), `#!/bin/sh\necho "$1" >>'${seconds}'\n`, { mode: 0o755 });
  return {
    async service({ obeys }: { obeys: boolean }): Promise<ChildProcess> {
      const child = spawn(program, ['-c', `${obeys ? '' : "trap '' TERM; "}echo ready; read line`, 'serve'], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      await once(child.stdout, 'data');
      return child;
    },
    async remove(): Promise<string> {
      const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
      return (await promisify(execFile)('/bin/sh', [script, 'remove'], { env })).stderr;
    },
    waited: () => (existsSync(seconds) ? readFileSync(seconds, 'utf8').split('\n').length - 1 : 0),
  };
}

const ending = ({ pid }: ChildProcess) => `rdctl: ending process ${pid} and its engine\n`;
const staying = ({ pid }: ChildProcess) => `rdctl: process ${pid} did not end\n`;

describe.runIf(process.platform === 'linux')('the removal of the package', () => {
  test('ends a service that is suspended', async () => {
    const { service, remove } = stage();
    const suspended = await service({ obeys: true });
    const ended = once(suspended, 'exit');
    suspended.kill('SIGSTOP');
    expect(await remove()).toBe(ending(suspended));
    expect(await ended).toEqual([null, 'SIGTERM']);
  });

  test('waits for all services at once, and asks each of them before it waits', async () => {
    const { service, remove, waited } = stage();
    const [one, other] = [await service({ obeys: false }), await service({ obeys: false })];
    const obedient = await service({ obeys: true });
    const said = await remove();
    expect(said.startsWith([one, other, obedient].map(ending).sort(byPid).join(''))).toBe(true);
    expect(said.split('\n').filter((line) => line.includes('did not end'))).toHaveLength(2);
    for (const each of [one, other]) expect(said).toContain(staying(each));
    expect(waited()).toBe(SECONDS);
  });

  test('leaves other programs alone, and waits for nothing where no service runs', async () => {
    const { service, remove, waited } = stage();
    const elsewhere = await stage().service({ obeys: true });
    expect(await remove()).toBe('');
    expect(waited()).toBe(0);
    expect(elsewhere.exitCode ?? elsewhere.signalCode).toBeNull();
    const here = await service({ obeys: true });
    expect(await remove()).toBe(ending(here));
  });
});

/** As the shell lists the names in `/proc`. */
function byPid(one: string, other: string): number {
  return one < other ? -1 : 1;
}
