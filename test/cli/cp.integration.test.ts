import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../../src/os/run.ts';
import { rdctl, type Stage } from '../helpers/cli.ts';
import { guestRecords, writeState } from '../helpers/guest-records.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** As ssh treats its last argument: the remote shell parses it, in the home directory of its user. */
const SSH = `for line; do :; done
[[ " $* " == *" -S "*"/state/drivers/qemu/run/ssh "*" -T 127.0.0.1 "* ]] || exit 9
cd "$THERE" && exec sh -c "$line"`;

/** A directory as the machine's, and one of this computer. */
async function machine(ssh = SSH) {
  const [home, there, here] = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
  const env = { RDCTL_HOME: home, THERE: there, PATH: await guestRecords(home, ssh) };
  const cp = (from: string, to: string, stage: Stage = {}) => rdctl(['cp', from, to], { env, cwd: here, ...stage });
  return { home, there, here, env, cp };
}

const DONE = { exit: 0, out: '', err: '' };
const UNUSUAL = "-a 'b' $(c) *";

test('a file gets its content, mode and time, in both directions, and whatever its name is', async () => {
  const { there, here, cp } = await machine();
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
  writeFileSync(join(here, UNUSUAL), bytes);
  chmodSync(join(here, UNUSUAL), 0o640);
  utimesSync(join(here, UNUSUAL), 1_000_000_000, 1_000_000_000);
  expect(await cp(`./${UNUSUAL}`, 'machine:')).toEqual(DONE);
  expect(readFileSync(join(there, UNUSUAL)).equals(bytes)).toBe(true);
  expect(statSync(join(there, UNUSUAL))).toMatchObject({ mode: 0o100640, mtimeMs: 1e12 });

  expect(await cp(`machine:${UNUSUAL}`, 'other')).toEqual(DONE);
  expect(readFileSync(join(here, 'other')).equals(bytes)).toBe(true);
  expect(statSync(join(here, 'other'))).toMatchObject({ mode: 0o100640, mtimeMs: 1e12 });
  writeFileSync(join(here, 'empty'), '');
  expect(await cp('empty', 'machine:new')).toEqual(DONE);
  expect(readFileSync(join(there, 'new'), 'utf8')).toBe('');
  // Nothing temporary remains.
  expect([readdirSync(there), readdirSync(here)].map(({ length }) => length)).toEqual([2, 3]);
});

test('a directory keeps its links, and goes into an existing directory, becomes a new one, or is emptied into one', async () => {
  const { there, here, cp } = await machine();
  const fill = (at: string) => {
    mkdirSync(join(at, 'tree', 'below'), { recursive: true });
    writeFileSync(join(at, 'tree', 'below', UNUSUAL), 'x');
    symlinkSync('/etc/passwd', join(at, 'tree', 'link'));
  };
  const sides = [
    [here, there, 'tree', 'machine:'],
    [there, here, 'machine:tree', ''],
  ] as const;
  for (const [from, to, source, prefix] of sides) {
    fill(join(from));
    mkdirSync(join(to, 'into'));
    mkdirSync(join(to, 'open'), { mode: 0o751 });
    writeFileSync(join(to, 'open', 'kept'), '');
    expect(await cp(source, `${prefix}into`)).toEqual(DONE);
    expect(await cp(source, `${prefix}new`)).toEqual(DONE);
    expect(await cp(`${source}/.`, `${prefix}open`)).toEqual(DONE);
    for (const place of ['into/tree', 'new', 'open']) {
      expect(readFileSync(join(to, place, 'below', UNUSUAL), 'utf8')).toBe('x');
      expect(readlinkSync(join(to, place, 'link'))).toBe('/etc/passwd');
    }
    expect(readdirSync(join(to, 'open')).sort()).toEqual(['below', 'kept', 'link']);
    // An existing directory keeps its mode.
    expect(statSync(join(to, 'open')).mode & 0o777).toBe(0o751);
  }
});

test.each([
  ['gone', 'machine:x', 'could not read gone: no such file or directory'],
  ['file', 'machine:no/such', 'there is no directory ./no in the machine'],
  ['file', 'machine:new/', 'there is no directory ./new/ in the machine'],
  ['tree', 'machine:file', './file in the machine is not a directory'],
  ['machine:gone', 'x', 'there is no ./gone in the machine'],
  ['machine:file', 'no/such', /^Error: there is no directory .*\/no\n/],
  ['machine:file', 'new/', 'there is no directory new/'],
  ['machine:tree', 'file', /^Error: .*\/file is not a directory\n/],
])('%s to %s is refused, and changes nothing', async (from, to, message) => {
  const { there, here, cp } = await machine();
  for (const side of [there, here]) {
    writeFileSync(join(side, 'file'), 'old');
    mkdirSync(join(side, 'tree'));
  }
  const { exit, out, err } = await cp(from, to);
  expect({ exit, out }).toEqual({ exit: 1, out: '' });
  if (typeof message === 'string') expect(err).toContain(`Error: ${message}\n`);
  else expect(err).toMatch(message);
  for (const side of [there, here]) {
    expect(readdirSync(side).sort()).toEqual(['file', 'tree']);
    expect(readFileSync(join(side, 'file'), 'utf8')).toBe('old');
  }
});

test('devices, pipes and set-user-ID bits of the machine are left out', async () => {
  const { there, here, cp } = await machine();
  mkdirSync(join(there, 'tree'));
  writeFileSync(join(there, 'tree', 'program'), '');
  chmodSync(join(there, 'tree', 'program'), 0o4755);
  await run(['mkfifo', join(there, 'tree', 'pipe')]);
  expect(await cp('machine:tree', '.')).toEqual({
    exit: 0,
    out: '',
    err: 'notice: 1 special file (devices, pipes) left out\n',
  });
  expect(readdirSync(join(here, 'tree'))).toEqual(['program']);
  expect(statSync(join(here, 'tree', 'program')).mode & 0o7777).toBe(0o755);
});

test('an archive that leads out of the directory writes nothing there', async () => {
  const [hostile, outside] = [temporaryDirectory(), temporaryDirectory()];
  mkdirSync(join(hostile, 'tree'));
  for (const name of ['program', 'tree/good']) writeFileSync(join(hostile, name), '');
  symlinkSync(outside, join(hostile, 'way'));
  const archive = join(hostile, 'sent.tar');
  const moves = ['--transform', 's,^tree,way,', '--transform', 's,^program,../program,'];
  await run(['tar', '-cPf', archive, '-C', hostile, ...moves, 'program', 'way', 'tree/good']);
  const { there, here, cp } = await machine(
    SSH.replace('cd', `case $line in *" tar "*) exec cat ${archive} ;; esac; cd`),
  );
  mkdirSync(join(there, 'tree'));
  mkdirSync(join(here, 'in'));
  expect(await cp('machine:tree', 'in/new')).toMatchObject({ exit: 1, err: expect.stringContaining('../program') });
  expect(readdirSync(outside)).toEqual([]);
  expect(readdirSync(join(here, 'in'))).toEqual(['new']);
});

test('a copy that breaks off leaves the old file', async () => {
  const { here, there, cp } = await machine(`${SSH.replace('exec sh', 'sh')} | head -c 10; exit 255`);
  writeFileSync(join(there, 'file'), 'x'.repeat(1000));
  writeFileSync(join(here, 'file'), 'old');
  expect(await cp('machine:file', 'file')).toMatchObject({ exit: 1, out: '' });
  expect(readFileSync(join(here, 'file'), 'utf8')).toBe('old');
  expect(readdirSync(here)).toEqual(['file']);
});

test('a machine that does not answer is named as the reason', async () => {
  const { here, cp } = await machine('echo "Control socket connect: No such file" >&2; exit 255');
  writeFileSync(join(here, 'file'), '');
  expect(await cp('file', 'machine:')).toEqual({
    exit: 1,
    out: '',
    err: 'Error: The virtual machine cannot be reached: Control socket connect: No such file\nCheck `rdctl status`.\n',
  });
});

test('a copy that takes a while shows its progress on a terminal', async () => {
  const { there, env, here } = await machine(
    `${SSH.replace('exec sh', 'case $line in *cat*) printf xx; sleep 1.1 ;; esac; exec sh')}`,
  );
  writeFileSync(join(there, 'file'), 'yy');
  const { exit, err } = await rdctl(['cp', 'machine:file', 'copy'], { env, cwd: here, progress: true });
  expect(exit).toBe(0);
  expect(err).toContain('4 bytes');
});

test.each([
  ['host', 'The machine is this computer: the host driver uses no virtual machine.\n'],
  ['simulated', 'The desktop is simulated, so it has no machine.\n'],
  ['qemu', 'The virtual machine of this home is not running.\n'],
])('with the %s driver and without a running machine, cp and ssh-config say why not', async (driver, message) => {
  const home = temporaryDirectory();
  writeState(home, driver);
  for (const argv of [['cp', 'a', 'machine:'], ['ssh-config']]) {
    const { exit, out, err } = await rdctl(argv, { env: { RDCTL_HOME: home } });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain(`Error: ${message}`);
  }
});

test('ssh-config prints what OpenSSH reads as the way into this machine', async () => {
  const { home, env } = await machine();
  const { out } = await rdctl(['ssh-config'], { env });
  const file = join(home, 'config');
  writeFileSync(file, out);
  const { stdout } = await run(['ssh', '-G', '-F', file, 'rdctl']);
  const driver = join(home, 'state', 'drivers', 'qemu');
  for (const line of [
    'hostname 127.0.0.1',
    'port 2222',
    'user root',
    `identityfile ${join(driver, 'key')}`,
    `userknownhostsfile ${join(driver, 'known-hosts')}`,
    'stricthostkeychecking true',
    'identitiesonly yes',
  ]) {
    expect(stdout).toContain(`\n${line}\n`);
  }
  expect(JSON.parse((await rdctl(['ssh-config', '-o', 'json'], { env })).out)).toEqual({
    host: 'rdctl',
    hostname: '127.0.0.1',
    port: 2222,
    user: 'root',
    identityFile: join(driver, 'key'),
    knownHostsFile: join(driver, 'known-hosts'),
  });
});
