import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { managePath } from '../../../src/features/host-integration/shell-files.ts';
import { PATH_LINES } from '../../../src/features/host-integration/shell-lines.ts';
import type { IntegrationTargets } from '../../../src/features/host-integration/targets.ts';
import { testTargets } from '../../helpers/integration-targets.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';
import { fingerprint } from '../../helpers/user-home.ts';

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

/** What an earlier release wrote. */
const earlierBlock = ({ identity, bin }: IntegrationTargets) =>
  [identity.blockStart, `export PATH="${bin}:$PATH"`, identity.blockEnd].map((line) => `${line}\n`).join('');

describe('files that are elsewhere', () => {
  test.each([
    ['ZDOTDIR', '.config/zsh'],
    ['export ZDOTDIR="$HOME/.config/zsh"\n', '.config/zsh'],
    ["setopt x\n  ZDOTDIR='$HOME/old'\nexport ZDOTDIR=~/new # mine\n", 'new'],
    [`export ZDOTDIR=\${XDG_CONFIG_HOME:-$HOME/.config}/zsh\n`, '.config/zsh'],
    [`export ZDOTDIR="\${XDG_CONFIG_HOME}"/zsh\n`, undefined],
    ['ZDOTDIR=$(somewhere)\n', undefined],
    ['# export ZDOTDIR=~/old\n', undefined],
  ])('zsh reads them where %j says', async (said, directory) => {
    const base = testTargets({ shells: ['zsh'] });
    const { home } = base;
    const zshrc = join(home, directory ?? '', '.zshrc');
    if (said !== 'ZDOTDIR') writeFileSync(join(home, '.zshenv'), said);
    const targets = said === 'ZDOTDIR' ? { ...base, zshDirectory: join(home, '.config', 'zsh') } : base;
    const before = fingerprint(home);
    const outcomes = await managePath('rcfiles', targets);
    expect(outcomes).toEqual([{ part: 'path', file: zshrc, state: 'managed' }]);
    await managePath('manual', targets);
    expect(fingerprint(home)).toEqual(before);
  });

  test('fish reads them below XDG_CONFIG_HOME', async () => {
    const base = testTargets({ shells: ['fish'] });
    const configDirectory = join(base.home, 'settings');
    await managePath('rcfiles', { ...base, configDirectory });
    expect(managed(base.home)).toEqual(['settings/fish/config.fish']);
    await managePath('manual', { ...base, configDirectory });
    expect(readdirSync(base.home)).toEqual(['.local']);
  });

  test('what an earlier release put where no shell looks any more is given back byte for byte', async () => {
    const targets = testTargets({ shells: ['zsh'] });
    const at = (name: string) => join(targets.home, name);
    writeFileSync(at('.zshrc'), `# mine, no end${'\n'}${earlierBlock(targets)}`);
    writeFileSync(at('.zshenv'), 'ZDOTDIR=$HOME/zsh\n');
    await managePath('rcfiles', targets);
    expect(managed(targets.home)).toEqual(['zsh/.zshrc']);
    expect(readFileSync(at('.zshrc'), 'utf8')).toBe('# mine, no end\n');
  });
});

describe('a block that is there', () => {
  test('of an earlier release stays as it is, and is given back', async () => {
    const targets = testTargets({ shells: [] });
    const file = join(targets.home, '.bashrc');
    writeFileSync(file, `# mine\n${earlierBlock(targets)}`);
    const before = fingerprint(targets.home);
    await managePath('rcfiles', targets);
    expect(fingerprint(targets.home)).toEqual(before);
    await managePath('manual', targets);
    expect(readFileSync(file, 'utf8')).toBe('# mine\n');
  });

  test.each([
    `export PATH="\${HOME}/.local/share/rdctl/bin:\${PATH}"`,
    'PATH=~/.local/share/rdctl/bin:$PATH; export PATH',
    'path=("$HOME"/.local/share/rdctl/bin $path)',
    '# mine\n[ -d ~/.local ] && export PATH=$HOME/.local/share/rdctl/bin/:$PATH',
  ])('stays where it means the same: %s', async (line) => {
    const targets = testTargets({ shells: [] });
    const { blockStart, blockEnd } = targets.identity;
    const file = join(targets.home, '.bashrc');
    const text = `${blockStart}\n${line}\n${blockEnd}\n`;
    writeFileSync(file, text);
    for (const _ of [1, 2]) expect(await managePath('rcfiles', targets)).toMatchObject([{ state: 'managed' }]);
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  test.each([
    'export PATH="/home/another/.local/share/rdctl/bin:$PATH"',
    '# export PATH="$HOME/.local/share/rdctl/bin:$PATH"',
    'export PATH="$HOME/.local/share/rdctl/bin-2:$PATH"',
    'export PATH="/srv$HOME/.local/share/rdctl/bin:$PATH"',
    'echo "$HOME/.local/share/rdctl/bin"',
  ])('is replaced where it does not: %s', async (line) => {
    const targets = testTargets({ shells: [] });
    const { blockStart, blockEnd } = targets.identity;
    const file = join(targets.home, '.bashrc');
    writeFileSync(file, `${blockStart}\n${line}\n${blockEnd}\n`);
    await managePath('rcfiles', targets);
    expect(readFileSync(file, 'utf8').split('\n')[1]).toBe('export PATH="$HOME/.local/share/rdctl/bin:$PATH"');
  });
});

describe('a login shell that we do not set up', () => {
  const left = async (targets: IntegrationTargets) =>
    (await managePath('rcfiles', targets)).filter(({ state }) => state === 'left');

  test.each([
    ['/usr/bin/nu', '.config/nushell/config.nu', '$env.PATH = ($env.PATH | prepend "BIN")'],
    ['/opt/pwsh', '.config/powershell/profile.ps1', '$env:PATH = "BIN:$env:PATH"'],
    ['/bin/ksh', '.profile', 'export PATH="$HOME/.local/share/rdctl/bin:$PATH"'],
  ])('%s gets one line, until it is there', async (loginShell, name, expected) => {
    const targets = { ...testTargets(), loginShell };
    const file = join(targets.home, name);
    const line = expected.replace('BIN', targets.bin);
    expect(await left(targets)).toEqual([
      { part: 'path', file, state: 'left', message: expect.stringContaining(line) },
    ]);
    expect(await managePath('manual', targets)).not.toContainEqual(expect.objectContaining({ state: 'left' }));
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, `# mine\n${line}\n`);
    expect(await left(targets)).toEqual([]);
  });

  test.each(['/bin/bash', '/usr/sbin/nologin', '/usr/bin/fish', ''])('%j gets none', async (loginShell) => {
    expect(await left({ ...testTargets(), loginShell })).toEqual([]);
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
      expect(readFileSync(join(targets.home, managed(targets.home).at(-1) ?? ''), 'utf8')).not.toContain(targets.home);
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
    (name) => {
      const home = temporaryDirectory();
      for (const [program, line, directory] of [
        ['sh', PATH_LINES.posix(name), name],
        ['bash', PATH_LINES.posix(name), name],
        ['fish', PATH_LINES.fish(name), name],
        ['sh', PATH_LINES.posix(home + name, home), home + name],
        ['fish', PATH_LINES.fish(home + name, home), home + name],
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
