import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { refuseExposedUnit } from '../../cli/commands/service/private-unit.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NOBODY = 65534;
const isRootOnLinux = process.platform === 'linux' && process.getuid?.() === 0;

/** A program and a directory of programs; `parent` itself is writable by root only, unlike the usual place of temporary directories. */
function stage(parent?: string) {
  const folder = temporaryDirectory(parent);
  chmodSync(folder, 0o755);
  const [program, tools] = [join(folder, 'rdctl'), join(folder, 'tools')];
  writeFileSync(program, '', { mode: 0o755 });
  mkdirSync(tools, { mode: 0o755 });
  const check = (path: string, { system = true, self = [program], home = '/root' } = {}) =>
    refuseExposedUnit(
      { command: [...self, 'serve'], environment: { PATH: path, HOME: home } },
      { system, again: [...self, 'service', 'install', '--system'] },
    );
  return { folder, program, tools, check };
}

describe.runIf(isRootOnLinux)('a unit of the whole computer', () => {
  const atRoot = () => stage('/run');

  test('of programs that only root can change is made', () => {
    const { folder, tools, check } = atRoot();
    expect(() => check(`${tools}:${join(folder, 'not-there')}:/usr/bin`)).not.toThrow();
  });

  test('is not made with a PATH that leads to the programs of another user, and the command without it is named', () => {
    const { folder, program, tools, check } = atRoot();
    const theirs = join(folder, 'theirs');
    mkdirSync(join(theirs, 'bin'), { recursive: true });
    chownSync(theirs, NOBODY, NOBODY);
    const link = join(folder, 'link');
    symlinkSync(tools, link);
    lchownSync(link, NOBODY, NOBODY);
    for (const [entry, named] of [
      [join(theirs, 'bin'), theirs],
      [join(theirs, 'not-there'), theirs],
      [link, `the link ${link}`],
    ] as const) {
      expect(() => check(`${tools}:${entry}:/usr/bin`)).toThrow(
        expect.objectContaining({
          code: 'ERR_NOT_PRIVATE',
          message: expect.stringMatching(
            new RegExp(
              `^${named} belongs to another user \\(owner nobody, mode \\d+, and you are root\\), so a unit with it in its PATH may run programs of others as root$`,
            ),
          ),
          advice: `Leave it out, as root: \`env PATH=${tools}:/usr/bin ${program} service install --system\`.`,
        }),
      );
    }
    expect(() => check(theirs)).toThrow(
      expect.objectContaining({ advice: expect.stringContaining('`env PATH=/usr/sbin:/usr/bin:/sbin:/bin ') }),
    );
  });

  test('is not made with a PATH that all can write to, nor with one that all could after a boot', () => {
    const { tools, check } = atRoot();
    chmodSync(tools, 0o777);
    expect(() => check(`/usr/bin:${tools}`)).toThrow(
      expect.objectContaining({
        advice: expect.stringMatching(`^Run \`chmod go-w ${tools}\`\\. Otherwise: leave it out`),
      }),
    );
    chmodSync(tools, 0o1777);
    for (const entry of [tools, join(tools, 'bin')]) {
      expect(() => check(`/usr/bin:${entry}`)).toThrow(
        expect.objectContaining({
          message: expect.stringContaining(`${tools} can be written by other users (owner root, mode 1777)`),
          advice: expect.stringMatching(/^Leave it out, as root: /),
        }),
      );
    }
  });

  test('is not made with the home of another user', () => {
    const { folder, check } = atRoot();
    const home = join(folder, 'theirs');
    mkdirSync(home);
    chownSync(home, NOBODY, NOBODY);
    expect(() => check('/usr/bin', { home })).toThrow(
      expect.objectContaining({
        code: 'ERR_NOT_PRIVATE',
        message: expect.stringMatching(
          `^${home} belongs to another user \\(owner nobody, .*so a unit with this HOME may`,
        ),
        advice: 'Run it with `sudo -H`, which sets the home of root.',
      }),
    );
  });

  test('is not made of a program that another user owns, nor of one that starts it, nor of one in a directory for all', () => {
    const { folder, program, tools, check } = atRoot();
    const node = join(tools, 'node');
    writeFileSync(node, '', { mode: 0o755 });
    chownSync(node, NOBODY, NOBODY);
    for (const self of [[node, program], [node]]) {
      expect(() => check('/usr/bin', { self })).toThrow(
        expect.objectContaining({
          code: 'ERR_NOT_PRIVATE',
          message: expect.stringContaining(`${node} belongs to another user (owner nobody`),
          advice: expect.stringMatching(/where only root can write, such as \/usr\/local\/bin/),
        }),
      );
    }
    chmodSync(folder, 0o1777);
    expect(() => check('/usr/bin')).toThrow(`so a unit that runs ${program} may run something else as root`);
  });
});

describe.runIf(process.platform !== 'win32')('a unit of a user', () => {
  test('is not made of a program that others can change, and its PATH is that of its shells', () => {
    const { folder, program, tools, check } = stage();
    chmodSync(tools, 0o777);
    const install = () => check(tools, { system: false });
    expect(install).not.toThrow();
    for (const path of [program, folder]) {
      chmodSync(path, 0o777);
      expect(install).toThrow(
        expect.objectContaining({
          message: expect.stringContaining(`so a unit that runs ${program} may run something else as you`),
          advice: expect.stringContaining(`Run \`chmod go-w ${path}\`.`),
        }),
      );
      chmodSync(path, 0o755);
    }
    // Theirs are the files beside it, also through a link.
    chmodSync(tools, 0o1777);
    writeFileSync(join(tools, 'rdctl'), '', { mode: 0o755 });
    symlinkSync(join(tools, 'rdctl'), join(folder, 'link'));
    expect(() => check('', { system: false, self: [join(folder, 'link')] })).toThrow(`${tools} can be written`);
  });
});
