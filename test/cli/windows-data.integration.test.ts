import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { windowsDataDirectory } from '../../src/client/connection-file.ts';
import { discover } from '../../src/client/discovery.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const LOCAL = 'C:\\Users\\jo do\\AppData\\Local';
const FILE = { user: 'user', password: 'secret-word', port: 6107 };

let home = '';
let bin = '';
let wslpath = '';
let translated = '';

beforeEach(() => {
  home = temporaryDirectory();
  bin = join(home, 'bin');
  wslpath = join(bin, 'wslpath');
  translated = join(home, 'mnt/c/Users/jo do/AppData/Local');
  mkdirSync(bin);
  program('cmd.exe', `printf '%s\\n' "$@" >'${home}/asked'\nprintf '%s\\r\\n' '${LOCAL}'`);
  program('wsl-init', `test "$1" = '${LOCAL}' && printf '%s\\n' '${translated}'`);
  symlinkSync('wsl-init', wslpath);
});

/** A program on the `PATH` of the tests. */
function program(name: string, script: string): void {
  const path = join(bin, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

function write(path: string, value: object): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(value));
}

const environment = () => ({ PATH: `${bin}:${process.env.PATH ?? ''}`, WSLENV: '' });
const ask = () => windowsDataDirectory({ env: environment(), signal: new AbortController().signal, wslpath });

describe('the Windows directory', () => {
  test('comes from Windows and is translated', async () => {
    expect(await ask()).toBe(translated);
    expect(readFileSync(join(home, 'asked'), 'utf8')).toBe('/c\nchcp 65001 >nul & echo %LOCALAPPDATA%\n');
  });

  test.each([
    ['Windows cannot be asked', 'cmd.exe', 'exit 1'],
    ['the variable is not set there', 'cmd.exe', "echo '%LOCALAPPDATA%'"],
    ['the answer looks like an option', 'cmd.exe', "echo '--help'"],
    ['nothing is answered', 'cmd.exe', 'true'],
    ['it cannot be translated', 'wsl-init', 'exit 1'],
    ['the translation is no path', 'wsl-init', 'echo mnt/c'],
  ])('is unknown where %s', async (_why, name, script) => {
    program(name, script);
    expect(await ask()).toBeUndefined();
  });

  test('is unknown where there is no cmd.exe', async () => {
    const env = { PATH: join(home, 'empty') };
    expect(await windowsDataDirectory({ env, signal: new AbortController().signal, wslpath })).toBeUndefined();
  });
});

describe('discovery in WSL', () => {
  const find = (env: Record<string, string> = environment()) =>
    discover({}, env, 'linux', {
      homedir: home,
      wslpath,
      signal: () => new AbortController().signal,
    });
  const windowsFile = () => join(translated, 'rancher-desktop/rd-engine.json');
  const linuxFile = () => join(home, '.local/share/rancher-desktop/rd-engine.json');

  test('finds the application of Windows before one in Linux', async () => {
    write(linuxFile(), { ...FILE, port: 7000 });
    write(windowsFile(), FILE);
    expect(await find()).toMatchObject({ port: 6107, file: windowsFile(), foreign: true });
  });

  test('falls back to Linux', async () => {
    write(linuxFile(), { ...FILE, port: 7000 });
    expect(await find()).toMatchObject({ port: 7000, file: linuxFile() });
  });

  test.each([
    ['our own file exists', () => write(join(home, '.local/share/rdctl/app-engine.json'), FILE), environment],
    ['nothing says WSL', () => undefined, () => ({ PATH: environment().PATH })],
    [
      'wslpath is a program of its own',
      () => {
        wslpath = join(bin, 'wsl-init');
      },
      environment,
    ],
  ])('asks nothing where %s', async (_why, prepare, env) => {
    write(linuxFile(), FILE);
    prepare();
    expect(await find(env())).toMatchObject({ port: 6107 });
    expect(() => readFileSync(join(home, 'asked'))).toThrow('ENOENT');
  });
});
