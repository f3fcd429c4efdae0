import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { goBack } from '../../cli/commands/upgrade/carry-out.ts';
import { COMMANDS } from '../../cli/commands.ts';
import { run } from '../../cli/run.ts';
import { fakeIo, rdctlProgram } from '../helpers/cli.ts';
import { cannotMount, mountSmallDisk } from '../helpers/full-disk.ts';
import { filesOf, newKey, programOf, type Releases, releaseFile, releases, served } from '../helpers/releases.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { isStandalone } from '../helpers/tool-program.ts';

/** A program in a directory of its own, and the command as that program would run it. */
function installed() {
  const folder = temporaryDirectory();
  const bin = join(folder, 'bin');
  const home = join(folder, 'home');
  mkdirSync(bin);
  const program = join(bin, 'rdctl');
  writeFileSync(program, programOf('0.1.0'), { mode: 0o755 });
  async function upgrade(...argv: string[]) {
    const io = { ...fakeIo({ env: { RDCTL_HOME: home } }), self: [program] };
    const exit = await run(['upgrade', ...argv], io, COMMANDS);
    return { exit, ...io.text };
  }
  const text = () => readFileSync(program, 'utf8');
  /** Nothing happened: the program is the old one, and alone. */
  const expectUntouched = () => {
    expect(text()).toBe(programOf('0.1.0'));
    expect(readdirSync(bin)).toEqual(['rdctl']);
  };
  return { bin, home, program, upgrade, text, expectUntouched };
}

const flagsFor = ({ directory, signers }: Releases) => ['--base-url', directory, '--allowed-signers', signers];

test('an upgrade over HTTP, the way back, and the way back from that', async () => {
  const there = releases();
  there.publish('0.2.0');
  const base = await served(filesOf(there.directory));
  const { bin, home, program, upgrade, text } = installed();
  const flags = ['--base-url', `${base}/`, '--allowed-signers', there.signers];

  const found = await upgrade('--check', ...flags);
  expect(found).toMatchObject({ exit: 2, err: '' });
  expect(found.out).toMatch(
    new RegExp(`^rdctl 0\\.2\\.0 is at ${base}, and this is 0\\.1\\.0\\. It is signed by SHA256:.{43}\\.\n$`),
  );
  expect(readdirSync(bin)).toEqual(['rdctl']);

  expect(await upgrade(...flags)).toEqual({
    exit: 0,
    out: `Upgraded ${program} from 0.1.0 to 0.2.0.\n`,
    err: '`rdctl upgrade --back` goes back to 0.1.0.\n',
  });
  expect(text()).toBe(programOf('0.2.0'));
  expect(readdirSync(join(home, 'cache', 'downloads'))).toEqual(['upgrade.lock']);
  expect(readdirSync(home)).toEqual(['cache']);
  expect(readFileSync(join(bin, '.rdctl.previous'), 'utf8')).toBe(programOf('0.1.0'));

  const io = { ...fakeIo({ env: { RDCTL_HOME: home } }), self: [program] };
  // The command of this process is always the first version.
  expect(await upgrade('--back')).toMatchObject({ exit: 3, err: expect.stringContaining('is version 0.2.0 by now') });
  const previous = join(bin, '.rdctl.previous');
  const back = { outcome: 'went-back', program, previous, services: [] };
  expect(await goBack(io, '0.2.0')).toEqual({ ...back, current: '0.2.0', version: '0.1.0' });
  expect(text()).toBe(programOf('0.1.0'));
  expect(await goBack(io, '0.1.0')).toEqual({ ...back, current: '0.1.0', version: '0.2.0' });
  expect(text()).toBe(programOf('0.2.0'));
});

test.each(['--back', 'an upgrade'])('during a way back, %s is refused, and the way back goes on', async (second) => {
  const there = releases();
  there.publish('0.2.0');
  const { bin, upgrade, text } = installed();
  const previous = join(bin, '.rdctl.previous');
  const gate = join(bin, '..', 'gate');
  execFileSync('mkfifo', [gate]);
  // The first one that runs it waits at the gate.
  writeFileSync(previous, `${programOf('0.0.9')}mkdir '${gate}.taken' 2>/dev/null && read line <'${gate}'\nexit 0\n`, {
    mode: 0o755,
  });
  const before = [text(), readFileSync(previous, 'utf8')];
  const first = upgrade('--back');
  const opened = await open(gate, 'w');
  expect(await upgrade(...(second === '--back' ? ['--back'] : flagsFor(there)))).toMatchObject({
    exit: 3,
    err: expect.stringContaining(`another upgrade is running (pid ${process.pid})`),
  });
  expect([text(), readFileSync(previous, 'utf8')]).toEqual(before);
  await opened.close();
  expect(await first).toMatchObject({ exit: 0, out: expect.stringContaining('is version 0.0.9 again') });
  expect([readFileSync(previous, 'utf8'), text()]).toEqual(before);
});

test('what is not newer is installed only by its name', async () => {
  const there = releases();
  const { upgrade, text, expectUntouched } = installed();
  for (const [version, outcome] of [
    ['0.3.0-rc.1', 'prerelease'],
    ['0.1.0', 'current'],
    ['0.0.9', 'older'],
  ] as const) {
    there.publish(version);
    const { exit, out } = await upgrade(...flagsFor(there), '-o', 'json');
    expect([exit, JSON.parse(out).outcome]).toEqual([0, outcome]);
    expectUntouched();
  }
  expect(await upgrade(...flagsFor(there), '--version', 'v0.0.9')).toMatchObject({
    exit: 0,
    out: expect.stringMatching(/^Downgraded .* from 0\.1\.0 to 0\.0\.9\.\n$/),
  });
  expect(text()).toBe(programOf('0.0.9'));
  expect(await upgrade(...flagsFor(there), '--version', '7.7.7')).toMatchObject({
    exit: 1,
    err: expect.stringContaining(`there is no signed release 7.7.7 at ${there.directory}`),
  });
});

describe('refused, with the program as it was:', () => {
  type Spoil = (there: Releases, place: string) => void;
  const change = (path: string, by: (text: string) => string) => writeFileSync(path, by(readFileSync(path, 'utf8')));
  const spoiled: readonly [what: string, spoil: Spoil, why: string][] = [
    ['another key', (there) => there.publish('0.2.0', undefined, { key: there.otherKey }), 'a key that is not trusted'],
    ['another purpose', (there) => there.publish('0.2.0', undefined, { namespace: 'file' }), 'it is not for releases'],
    [
      'changed sums',
      (_, place) => change(join(place, 'SHA256SUMS'), (text) => text.replace(/^../, '00')),
      'does not fit',
    ],
    ['truncated sums', (_, place) => change(join(place, 'SHA256SUMS'), () => ''), 'does not fit'],
    [
      'a truncated signature',
      (_, place) => change(join(place, 'SHA256SUMS.sig'), (text) => text.slice(0, 100)),
      'it is not a signature',
    ],
    ['no signature', (_, place) => rmSync(join(place, 'SHA256SUMS.sig')), 'there is no signed release 0.2.0'],
    [
      'a changed file',
      (_, place) => change(join(place, releaseFile('0.2.0')), (text) => `${text}#`),
      'is not the file that was signed',
    ],
    ['no file', (_, place) => rmSync(join(place, releaseFile('0.2.0'))), 'no such file'],
    [
      'an old release in the place of a new one',
      (there) => there.publish('0.0.9', undefined, { as: '0.2.0' }),
      'the signed file in the place of 0.2.0 is rdctl-0.0.9-',
    ],
    [
      'a latest that is no version',
      ({ directory }) => writeFileSync(join(directory, 'latest'), '../0.2.0\n'),
      'does not name a version',
    ],
    [
      'an endless latest',
      ({ directory }) => writeFileSync(join(directory, 'latest'), ' '.repeat(300)),
      'larger than 256 bytes',
    ],
    [
      'a file that does not run here',
      (there) => there.publish('0.2.0', '\u007fELF no program'),
      'does not run on this computer',
    ],
    [
      'a file that fails',
      (there) => there.publish('0.2.0', '#!/bin/sh\necho GLIBC_9.9 not found >&2\nexit 1\n'),
      'GLIBC_9.9 not found',
    ],
    [
      'a file that is another version',
      (there) => there.publish('0.2.0', programOf('0.3.0')),
      'says that it is version 0.3.0',
    ],
  ];
  test.each(spoiled)('%s', async (_, spoil, why) => {
    const there = releases();
    const { upgrade, expectUntouched } = installed();
    there.publish('0.2.0');
    spoil(there, join(there.directory, '0.2.0'));
    const { exit, err } = await upgrade(...flagsFor(there));
    expect(err).toContain(why);
    expect(exit).toBeGreaterThan(0);
    expectUntouched();
  });

  test.each(['rsa', 'ecdsa'])('a key of the type %s', async (type) => {
    const there = releases();
    const key = newKey(join(there.directory, '..', type), type);
    there.publish('0.2.0', undefined, { key });
    const { upgrade, expectUntouched } = installed();
    expect(await upgrade(...flagsFor(there))).toMatchObject({
      exit: 3,
      err: expect.stringContaining('only ssh-ed25519'),
    });
    writeFileSync(there.signers, `release ${readFileSync(`${key}.pub`, 'utf8')}`);
    expect(await upgrade(...flagsFor(there))).toMatchObject({ exit: 3, err: expect.stringContaining('not supported') });
    expectUntouched();
  });

  test('no key at all, and the message says where to put one, where it counts', async () => {
    const there = releases();
    there.publish('0.2.0');
    const { home, upgrade, expectUntouched, text } = installed();
    const place = join(home, 'config', 'allowed-signers');
    expect(await upgrade('--base-url', there.directory)).toMatchObject({
      exit: 3,
      err: expect.stringContaining(
        `Write the key of the publisher to ${place}, as one line: release ssh-ed25519 AAAA…`,
      ),
    });
    expectUntouched();
    mkdirSync(join(home, 'config'), { recursive: true, mode: 0o700 });
    writeFileSync(place, readFileSync(there.signers), { mode: 0o666 });
    chmodSync(place, 0o666);
    expect(await upgrade('--base-url', there.directory)).toMatchObject({
      exit: 3,
      err: expect.stringContaining('so the keys in it cannot be trusted'),
    });
    expectUntouched();
    chmodSync(place, 0o600);
    expect(await upgrade('--base-url', there.directory)).toMatchObject({ exit: 0 });
    expect(text()).toBe(programOf('0.2.0'));
  });

  test('a base that is not known, or not safe', async () => {
    const { upgrade, expectUntouched } = installed();
    expect(await upgrade()).toMatchObject({
      exit: 1,
      err: expect.stringContaining('Add --base-url URL, or set RDCTL_UPGRADE_URL'),
    });
    const { signers } = releases();
    for (const base of [
      'http://example.com',
      'ftp://example.com',
      'releases',
      'https://u:p@example.com',
      'https://example.com/?a',
    ]) {
      const { exit, err } = await upgrade('--base-url', base, '--allowed-signers', signers);
      expect([exit, err]).toEqual([1, expect.stringContaining('is not a valid release URL')]);
      expect(err).not.toContain('u:p');
    }
    expectUntouched();
  });

  test('a redirect to an address that would not be accepted itself', async () => {
    const there = releases();
    there.publish('0.2.0');
    const files = filesOf(there.directory);
    const base = await served((request, response) => {
      if (request.url === '/latest') response.writeHead(302, { location: '/moved/latest' }).end();
      else if (request.url === '/moved/latest') response.end('0.2.0\n');
      else if (request.url?.endsWith('SHA256SUMS')) response.writeHead(302, { location: 'http://example.com/' }).end();
      else files(request, response);
    });
    const { upgrade, expectUntouched } = installed();
    expect(await upgrade('--base-url', base, '--allowed-signers', there.signers)).toMatchObject({
      exit: 1,
      err: expect.stringContaining(`${base}/0.2.0/SHA256SUMS redirects to an address that is not accepted`),
    });
    expectUntouched();
  });

  test('a program that others can write', async () => {
    const there = releases();
    there.publish('0.2.0');
    const { program, upgrade, expectUntouched } = installed();
    chmodSync(program, 0o777);
    expect(await upgrade(...flagsFor(there))).toMatchObject({
      exit: 3,
      err: expect.stringContaining('cannot be upgraded safely'),
    });
    expectUntouched();
  });

  test('a program in a directory for everyone, and what others have left beside it is neither run nor moved', async () => {
    const there = releases();
    there.publish('0.2.0');
    const { bin, program, upgrade, text } = installed();
    const marker = join(bin, '..', 'ran');
    const planted = `#!/bin/sh\n: >'${marker}'\necho rdctl 6.6.6\n`;
    // Of a process that has ended.
    const names = ['.rdctl.previous', `.rdctl.kept-${spawnSync('true').pid}.tmp`];
    chmodSync(bin, 0o1777);
    for (const name of names) {
      writeFileSync(join(bin, name), planted, { mode: 0o755 });
      for (const argv of [['--back'], flagsFor(there)]) {
        const { exit, err } = await upgrade(...argv);
        expect(err).toContain(`${bin} can be written by other users`);
        expect(err).toContain('mode 1777');
        expect(err).toContain(`so what lies beside ${program}, such as the version before it, may be theirs`);
        expect(err).toContain(
          `Move the program to a directory that only you or root can write: \`mv ${program} /usr/local/bin/\`.`,
        );
        expect(err).not.toContain('chmod');
        expect(exit).toBe(3);
        expect(readdirSync(bin).sort()).toEqual([name, 'rdctl']);
      }
      rmSync(join(bin, name));
    }
    expect(existsSync(marker)).toBe(false);
    expect(text()).toBe(programOf('0.1.0'));
  });

  test('a way back to a file that others own or can write, which its directory no longer lets them replace', async () => {
    const { bin, upgrade, text } = installed();
    const previous = join(bin, '.rdctl.previous');
    const marker = join(bin, '..', 'ran');
    const plant = () => writeFileSync(previous, `#!/bin/sh\n: >'${marker}'\n`, { mode: 0o755 });
    const spoils = [() => chmodSync(previous, 0o777)];
    if (process.getuid?.() === 0) spoils.push(() => chownSync(previous, 65534, 65534));
    for (const spoil of spoils) {
      plant();
      spoil();
      const { exit, err } = await upgrade('--back');
      expect(err).toContain(`so ${previous} need not be the version before the last upgrade`);
      expect(err).toContain(`Remove it: rm ${previous}\n`);
      expect(exit).toBe(3);
      rmSync(previous);
    }
    expect(existsSync(marker)).toBe(false);
    expect(text()).toBe(programOf('0.1.0'));
  });

  test('a way back without an upgrade before', async () => {
    const { upgrade, expectUntouched } = installed();
    expect(await upgrade('--back')).toMatchObject({
      exit: 3,
      err: expect.stringContaining('no version to go back to'),
    });
    expect(await upgrade('--back', '--check')).toMatchObject({ exit: 1, err: expect.stringContaining('--check') });
    expectUntouched();
  });

  test.skipIf(cannotMount())('a full disk', async () => {
    const there = releases();
    there.publish('0.2.0', `${programOf('0.2.0')}${'#'.repeat(300_000)}\n`);
    const { bin, program, upgrade, expectUntouched } = installed();
    onTestFinished(mountSmallDisk(bin, '64k'));
    writeFileSync(program, programOf('0.1.0'), { mode: 0o755 });
    expect(await upgrade(...flagsFor(there))).toMatchObject({ exit: 1, err: expect.stringContaining('no space left') });
    expectUntouched();
  });
});

describe('a program that something else manages is refused with its command:', () => {
  test.skipIf(process.platform !== 'linux')('a Debian package', async () => {
    const io = { ...fakeIo({ env: { RDCTL_HOME: temporaryDirectory() } }), self: ['/usr/bin/dpkg'] };
    expect(await run(['upgrade', '--back'], io, COMMANDS)).toBe(3);
    expect(io.text.err).toContain('with the Debian package dpkg (/usr/bin/dpkg)');
    expect(io.text.err).toContain('sudo apt install ./dpkg_VERSION_ARCHITECTURE.deb');
  });

  // The standalone file is no clone: with it this is not a test that is left out.
  if (!isStandalone)
    test('a clone', async () => {
      const env = { RDCTL_HOME: temporaryDirectory() };
      expect(await rdctlProgram(['upgrade', '--check'], { env })).toMatchObject({
        exit: 3,
        err: expect.stringContaining('git pull && npm ci'),
      });
    });
});

test('ssh-keygen shows the fingerprint that rdctl shows', async () => {
  const there = releases();
  there.publish('0.2.0');
  const { out } = await installed().upgrade('--check', ...flagsFor(there), '-o', 'json');
  const key = join(there.directory, '..', 'key.pub');
  const shown = execFileSync('ssh-keygen', ['-l', '-f', key], { encoding: 'utf8' });
  expect(shown).toContain(` ${JSON.parse(out).signer} `);
});
