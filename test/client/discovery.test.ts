import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { discover } from '../../src/client/discovery.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

let home = '';
let own = '';
let foreign = '';

beforeEach(() => {
  home = temporaryDirectory();
  own = join(home, '.local/share/rdctl/app-engine.json');
  foreign = join(home, '.local/share/rancher-desktop/rd-engine.json');
});

function write(path: string, content: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
}

const FILE = { user: 'user', password: 'secret-word', port: 6107, pid: 1 };
const find = (flags = {}, env = {}) => discover(flags, env, 'linux', { homedir: home });

test('our file takes precedence over that of the compatible application', async () => {
  write(own, FILE);
  write(foreign, { ...FILE, port: 7000 });
  expect(await find()).toEqual({
    host: '127.0.0.1',
    port: 6107,
    user: 'user',
    password: 'secret-word',
    file: own,
    pid: 1,
    foreign: false,
    reached: { by: 'proof', password: 'secret-word' },
  });
});

test('without ours, finds and marks the file of the compatible application', async () => {
  write(foreign, FILE);
  expect(await find()).toMatchObject({ file: foreign, foreign: true });
});

test('with RDCTL_HOME, only the file there counts', async () => {
  write(own, FILE);
  write(foreign, FILE);
  const env = { RDCTL_HOME: join(home, 'one') };
  await expect(find({}, env)).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
  write(join(home, 'one', 'app-engine.json'), { ...FILE, port: 6200 });
  expect(await find({}, env)).toMatchObject({ port: 6200, foreign: false });
});

test('RDCTL_CONFIG_PATH names a file, and --config-path overrides it', async () => {
  const a = join(home, 'a.json');
  const b = join(home, 'b', 'rd-engine.json');
  write(a, { ...FILE, port: 1001 });
  write(b, { ...FILE, port: 1002 });
  expect(await find({}, { RDCTL_CONFIG_PATH: a })).toMatchObject({ port: 1001, file: a, foreign: false });
  expect(await find({ 'config-path': b }, { RDCTL_CONFIG_PATH: a })).toMatchObject({ port: 1002, foreign: true });
  expect(await find({ 'config-path': '' }, { RDCTL_CONFIG_PATH: a })).toMatchObject({ port: 1001 });
});

test('flags override the file; empty text and port 0 count as not given', async () => {
  write(own, { ...FILE, host: '10.0.0.9' });
  expect(await find({ host: '::1', port: 99, user: 'me', password: 'pw' })).toMatchObject({
    host: '::1',
    port: 99,
    user: 'me',
    password: 'pw',
  });
  expect(await find({ host: '', port: 0, user: '', password: '' })).toMatchObject({
    ...{ host: '10.0.0.9', port: 6107 },
    user: 'user',
  });
});

test('the password may come from a file or the environment', async () => {
  write(own, FILE);
  const file = join(home, 'pw');
  write(file, 'from-file\n');
  expect(await find({}, { RDCTL_PASSWORD: 'from-env' })).toMatchObject({ password: 'from-env' });
  expect(await find({ 'password-file': file }, { RDCTL_PASSWORD: 'from-env' })).toMatchObject({
    password: 'from-file',
  });
  expect(await find({ password: 'flag', 'password-file': file })).toMatchObject({ password: 'flag' });
  await expect(find({ 'password-file': join(home, 'none') })).rejects.toThrow(
    /could not read the password file .*none: no such file or directory/,
  );
});

test('complete flags need no file; incomplete ones mean that nothing runs', async () => {
  const all = { user: 'u', password: 'p', port: 5 };
  expect(await find(all)).toEqual({
    ...{ host: '127.0.0.1', ...all, passwordFrom: '--password', foreign: false },
    reached: { by: 'word' },
  });
  await expect(find({ ...all, port: 0 })).rejects.toMatchObject({
    code: 'ERR_NOT_RUNNING',
    message: `failed to get connection info: open ${own}: no such file or directory`,
    advice: expect.stringContaining('rdctl start'),
  });
});

test('an explicit file must exist, even with complete flags', async () => {
  const flags = { 'config-path': '/nowhere/x.json', user: 'u', password: 'p', port: 5 };
  await expect(find(flags)).rejects.toMatchObject({
    code: 'ERR_CONNECTION_SETTINGS',
    message: 'failed to get connection info: open /nowhere/x.json: no such file or directory',
  });
});

test.each([
  ['{"password": "secret-word", oops', 'it is not JSON'],
  ['\uFEFF{}', 'it is not JSON'],
  ['[]', 'it is not a JSON object'],
  [{ ...FILE, port: '6107' }, '"port" is not an integer'],
  [{ ...FILE, port: 70_000 }, '"port" is not between 1 and 65535'],
  [{ ...FILE, user: 5 }, '"user" is not a string'],
])('bad file %# has its message, without the password in it', async (content, reason) => {
  write(own, content);
  const error = await find().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: 'ERR_CONNECTION_SETTINGS',
    message: `failed to get connection info: error parsing config file "${own}": ${reason}`,
  });
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('secret-word');
});

test('an incomplete file is reported', async () => {
  write(own, { ...FILE, password: '' });
  await expect(find()).rejects.toThrow(
    'failed to get connection info: insufficient connection settings (missing one or more of: port, user, and password)',
  );
});

test('keys in the file are case-insensitive, and unknown keys are ignored', async () => {
  write(own, { USER: 'u', Password: 'p', Port: 6, extra: [] });
  expect(await find()).toMatchObject({ user: 'u', password: 'p', port: 6 });
});

test('a directory in its place is an error', async () => {
  mkdirSync(own, { recursive: true });
  await expect(find()).rejects.toThrow(`open ${own}: is a directory`);
});

test('outside WSL, Windows is not asked for its directory', async () => {
  write(foreign, FILE);
  const connection = await discover({}, {}, 'linux', {
    homedir: home,
    signal: () => {
      throw new Error('asked');
    },
  });
  expect(connection.file).toBe(foreign);
});

test('in drop-in mode a file belongs to the other application unless its writer has ended', async () => {
  const base = temporaryDirectory();
  const env = { XDG_DATA_HOME: base, RDCTL_COMPAT: 'rancher-desktop' };
  const file = join(base, 'rancher-desktop', 'rd-engine.json');
  mkdirSync(dirname(file), { recursive: true });
  for (const [pid, foreign] of [
    [undefined, true],
    [process.pid, true],
    [2 ** 30, false],
  ] as const) {
    writeFileSync(file, JSON.stringify({ user: 'u', password: 'p', port: 6107, pid }));
    expect(await discover({}, env, 'linux', { homedir: base })).toMatchObject({ file, foreign });
  }
});
