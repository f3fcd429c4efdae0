import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { managePath, PATH_LINES } from '../../../src/features/host-integration/shell-files.ts';
import { testTargets } from '../../helpers/integration-targets.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const ALL = ['bash', 'zsh', 'csh', 'tcsh', 'fish'];

/** Names of the files that have the block. */
function managed(home: string): string[] {
  const names = readdirSync(home, { recursive: true, withFileTypes: true });
  return names
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path, 'utf8').includes('### MANAGED BY'))
    .map((path) => path.slice(home.length + 1))
    .sort();
}

describe('rcfiles', () => {
  test.each([
    [[], ['bash'], ['.bash_profile', '.bashrc']],
    [[], [], []],
    [[], ['zsh'], ['.zshrc']],
    [[], ['tcsh'], ['.cshrc']],
    [[], ['fish'], ['.config/fish/config.fish']],
    [[], ALL, ['.bash_profile', '.bashrc', '.config/fish/config.fish', '.cshrc', '.zshrc']],
    [['.profile'], ['bash'], ['.bashrc', '.profile']],
    [['.profile', '.bash_login'], ['bash'], ['.bash_login', '.bashrc']],
    [['.profile', '.bash_login', '.bash_profile'], ['bash'], ['.bash_profile', '.bashrc']],
    [['.cshrc'], ['tcsh'], ['.cshrc']],
    [['.tcshrc'], ['bash'], ['.bash_profile', '.bashrc', '.tcshrc']],
    [['.zshrc'], [], ['.zshrc']],
  ])('with the files %j and the shells %j manages %j', async (files, shells, expected) => {
    const targets = testTargets({ shells });
    for (const name of files) writeFileSync(join(targets.home, name), '# mine\n');
    const outcomes = await managePath('rcfiles', targets);
    expect(managed(targets.home)).toEqual(expected);
    const done = outcomes.filter(({ state }) => state === 'managed').map(({ file }) => file);
    expect(done.sort()).toEqual(expected.map((name) => join(targets.home, name)));
    expect(await managePath('rcfiles', targets)).toEqual(outcomes);
  });

  test('a new login file that takes precedence takes the block over', async () => {
    const targets = testTargets();
    writeFileSync(join(targets.home, '.profile'), '# mine\n');
    await managePath('rcfiles', targets);
    writeFileSync(join(targets.home, '.bash_profile'), '');
    await managePath('rcfiles', targets);
    expect(managed(targets.home)).toEqual(['.bash_profile', '.bashrc']);
    expect(readFileSync(join(targets.home, '.profile'), 'utf8')).toBe('# mine\n');
  });

  test('two names of one file get one block', async () => {
    const targets = testTargets();
    writeFileSync(join(targets.home, '.bashrc'), '# mine\n');
    symlinkSync('.bashrc', join(targets.home, '.bash_profile'));
    await managePath('rcfiles', targets);
    expect(readFileSync(join(targets.home, '.bashrc'), 'utf8').match(/START/g)).toHaveLength(1);
    await managePath('manual', targets);
    expect(readFileSync(join(targets.home, '.bashrc'), 'utf8')).toBe('# mine\n');
  });

  test('a file that cannot be changed does not block the others', async () => {
    const targets = testTargets({ shells: ['bash', 'zsh'] });
    symlinkSync('.bashrc', join(targets.home, '.bashrc'));
    const outcomes = await managePath('rcfiles', targets);
    expect(outcomes).toContainEqual({
      part: 'path',
      file: join(targets.home, '.bashrc'),
      state: 'failed',
      message: expect.stringContaining('leads in a circle'),
    });
    expect(outcomes.filter(({ state }) => state === 'managed')).toHaveLength(2);
  });

  test('in drop-in mode the markers are those of the compatible application', async () => {
    const targets = testTargets({ dropIn: true });
    await managePath('rcfiles', targets);
    const text = readFileSync(join(targets.home, '.bashrc'), 'utf8');
    expect(text.split('\n')[0]).toBe('### MANAGED BY RANCHER DESKTOP START (DO NOT EDIT)');
    expect(text.trimEnd().split('\n').at(-1)).toBe('### MANAGED BY RANCHER DESKTOP END (DO NOT EDIT)');
  });
});

describe('manual', () => {
  test('restores every file, and removes those that were created', async () => {
    const targets = testTargets({ shells: ALL });
    const files = { '.bashrc': 'no end', '.profile': '', '.zshrc': 'a\n\n' };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(targets.home, name), text);
    await managePath('rcfiles', targets);
    const outcomes = await managePath('manual', targets);
    for (const [name, text] of Object.entries(files)) {
      expect([name, readFileSync(join(targets.home, name), 'utf8')]).toEqual([name, text]);
    }
    expect(readdirSync(targets.home).sort()).toEqual(['.bashrc', '.local', '.profile', '.zshrc']);
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(['clean']));
  });

  test('removes the directories that are empty then, and no others', async () => {
    const empty = testTargets({ shells: ['fish'] });
    await managePath('rcfiles', empty);
    await managePath('manual', empty);
    expect(readdirSync(empty.home)).toEqual(['.local']);

    const used = testTargets({ shells: ['fish'] });
    await managePath('rcfiles', used);
    writeFileSync(join(used.home, '.config', 'mine'), '');
    await managePath('manual', used);
    expect(readdirSync(join(used.home, '.config'))).toEqual(['mine']);
  });

  test('reports a file without our block as clean even if it cannot be edited, and one with it as failed', async () => {
    const targets = testTargets({ shells: [] });
    const outside = join(temporaryDirectory(), 'rc');
    writeFileSync(outside, 'theirs\n');
    symlinkSync(outside, join(targets.home, '.bashrc'));
    symlinkSync('nowhere', join(targets.home, '.zshrc'));
    mkdirSync(join(targets.home, '.cshrc'));
    expect((await managePath('manual', targets)).map(({ state }) => state)).toEqual(['clean', 'clean', 'clean']);
    writeFileSync(outside, `${targets.identity.blockStart}\n${targets.identity.blockEnd}\n`);
    const [bashrc] = await managePath('manual', targets);
    expect(bashrc).toMatchObject({
      state: 'failed',
      message: expect.stringContaining('outside of the home directory'),
    });
  });

  test('has nothing to do the first time', async () => {
    const targets = testTargets({ shells: ALL });
    expect(await managePath('manual', targets)).toEqual([]);
    expect(readdirSync(targets.home)).toEqual(['.local']);
  });
});

describe('real shells find programs on the resulting PATH', () => {
  for (const [shell, options] of [
    ['bash', ['-i', '-c']],
    ['zsh', ['-i', '-c']],
    ['fish', ['-c']],
  ] as const) {
    const program = programOf(shell);
    test.skipIf(program === undefined)(shell, async () => {
      const targets = testTargets({ shells: [shell] });
      await managePath('rcfiles', targets);
      const out = execFileSync(program ?? '', [...options, 'echo $PATH'], {
        env: { HOME: targets.home, PATH: '/usr/bin:/bin', TERM: 'dumb' },
        stdio: ['ignore', 'pipe', 'ignore'],
        encoding: 'utf8',
      });
      expect(out.trim().split(/[: ]/)[0]).toBe(targets.bin);
    });
  }
});

function programOf(shell: string): string | undefined {
  return ['/bin', '/usr/bin'].map((folder) => join(folder, shell)).find((path) => existsSync(path));
}

describe('a directory of any name', () => {
  test.each(['/a b/bin', "/it's/$HOME/bin", '/a"b`c`\\d!/bin', '/é/bin'])(
    '%s is one word for a POSIX shell and for fish',
    (directory) => {
      const home = temporaryDirectory();
      for (const [program, line] of [
        ['sh', PATH_LINES.posix(directory)],
        ['bash', PATH_LINES.posix(directory)],
        ['fish', PATH_LINES.fish(directory)],
      ] as const) {
        const path = programOf(program);
        if (path === undefined) continue;
        const script = `${line}\n${program === 'fish' ? 'printf %s $PATH[1]' : 'printf %s "$PATH"'}`;
        const out = execFileSync(path, ['-c', script], {
          env: { HOME: home, PATH: '/usr/bin:/bin' },
          encoding: 'utf8',
        });
        expect([program, out]).toEqual([program, program === 'fish' ? directory : `${directory}:/usr/bin:/bin`]);
      }
    },
  );

  test.each(['/a:b', '/a\nb'])('%j cannot be part of PATH', (directory) => {
    expect(() => PATH_LINES.posix(directory)).toThrow('cannot be on a PATH');
  });
});
