import { chmodSync, chownSync, lchownSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeDirectory } from '../../src/os/directory.ts';
import {
  type Exposure,
  exposureBy,
  exposureFix,
  exposureOf,
  exposureText,
  isPrivateGroup,
  type NameFacts,
  requirePrivate,
  type Trust,
} from '../../src/state/ownership.ts';
import { places } from '../../src/state/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const ME = 1000;
const MY_GROUP = 1000;
const TRUST: Trust = { owner: (uid) => uid === ME || uid === 0, group: (gid) => gid === MY_GROUP || gid === 0 };

describe('one name', () => {
  const directory = (mode: number, facts: Partial<NameFacts> = {}): NameFacts => ({
    kind: 'directory',
    uid: ME,
    gid: MY_GROUP,
    mode,
    ...facts,
  });

  test.each([
    ['my home, 0755', directory(0o755), undefined],
    ['my home, 0750', directory(0o750), undefined],
    ['my home under umask 002, with a group of my own', directory(0o775), undefined],
    ['the same with a group that others are in', directory(0o775, { gid: 100 }), 'writers'],
    ['a group that others are in and that may not write', directory(0o755, { gid: 100 }), undefined],
    ['/home of root', directory(0o755, { uid: 0, gid: 0 }), undefined],
    ['a parent open to all', directory(0o777, { uid: 0, gid: 0 }), 'writers'],
    ['/tmp', directory(0o1777, { uid: 0, gid: 0 }), undefined],
    ['/tmp as the home itself', directory(0o1777, { uid: 0, gid: 0, last: true }), 'writers'],
    ['a home of another user', directory(0o755, { uid: 1001 }), 'owner'],
    ['a link of mine, whose bits mean nothing', directory(0o777, { kind: 'link' }), undefined],
    ['a link of another user', directory(0o777, { kind: 'link', uid: 1001 }), 'owner'],
    ['a file for all', directory(0o666, { kind: 'file', last: true }), 'writers'],
    ['a file with a sticky bit, which means nothing', directory(0o1666, { kind: 'file', last: true }), 'writers'],
    ['a file that all may read', directory(0o644, { kind: 'file', last: true }), undefined],
  ])('%s', (_name, facts, expected) => {
    expect(exposureBy(facts, TRUST)).toBe(expected);
  });

  test('/tmp, for what is run after a boot, which empties it', () => {
    const trust: Trust = { ...TRUST, afterBoot: true };
    expect(exposureBy(directory(0o1777, { uid: 0, gid: 0 }), trust)).toBe('writers');
    expect(exposureBy(directory(0o755, { uid: 0, gid: 0 }), trust)).toBeUndefined();
    expect(exposureBy(directory(0o777, { kind: 'link' }), trust)).toBeUndefined();
  });
});

describe('a group', () => {
  const passwd = 'root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\nyou:x:1001:1001::/home/you:/bin/sh\n';
  const isPrivate = (
    gid: number,
    accounts = { passwd, group: 'root:x:0:\nme:x:1000:\nyou:x:1001:\nteam:x:50:me,you\n' },
  ) => isPrivateGroup(gid, ME, TRUST.owner, accounts);

  test('of the user alone, or of root, is private', () => {
    expect(isPrivate(1000)).toBe(true);
    expect(isPrivate(0)).toBe(true);
  });

  test('of another user, or with another member, is not', () => {
    expect(isPrivate(1001)).toBe(false);
    expect(isPrivate(50)).toBe(false);
    expect(isPrivate(1000, { passwd, group: 'me:x:1000:you\n' })).toBe(false);
    expect(isPrivate(1000, { passwd: `${passwd}third:x:1002:1000::/:/bin/sh\n`, group: 'me:x:1000:\n' })).toBe(false);
  });

  test('that is in no file is private when its number is that of the user, as private groups have it', () => {
    expect(isPrivate(1000, { passwd: '', group: '' })).toBe(true);
    expect(isPrivate(100, { passwd: '', group: '' })).toBe(false);
  });
});

const POSIX = process.platform !== 'win32';

describe.runIf(POSIX)('a path', () => {
  const openToAll = (path: string) => {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o777);
    return path;
  };

  test('in a fresh temporary directory is private, even before it exists', () => {
    const base = temporaryDirectory();
    expect(exposureOf(base)).toBeUndefined();
    expect(exposureOf(join(base, 'not', 'yet'))).toBeUndefined();
  });

  test('below a world-writable directory is not, and the directory is named', () => {
    const base = temporaryDirectory();
    const open = openToAll(join(base, 'open'));
    mkdirSync(join(open, 'home'), { mode: 0o700 });
    const exposure = exposureOf(join(open, 'home'));
    expect(exposure).toMatchObject({ path: open, by: 'writers' });
    expect(exposureText(exposure as Exposure)).toMatch(/ can be written by other users \(owner \S+, mode 0777\)$/);
    expect(exposureFix(exposure as Exposure)).toBe(`chmod go-w ${open}`);
    chmodSync(open, 0o755);
    expect(exposureOf(join(open, 'home'))).toBeUndefined();
  });

  test('that is a directory for everyone is not, and nobody is told to close it', () => {
    const open = openToAll(join(temporaryDirectory(), 'open'));
    chmodSync(open, 0o1777);
    const exposure = exposureOf(open) as Exposure;
    expect(exposureText(exposure)).toMatch(/ can be written by other users \(owner \S+, mode 1777\)$/);
    expect(exposureFix(exposure)).toBeUndefined();
  });

  test('that is a link is checked at its target, and along the way', () => {
    const base = temporaryDirectory();
    mkdirSync(join(base, 'real'), { mode: 0o700 });
    symlinkSync('real', join(base, 'home'));
    expect(exposureOf(join(base, 'home', 'state'))).toBeUndefined();
    const open = openToAll(join(base, 'open'));
    symlinkSync(join('..', 'real'), join(open, 'link'));
    symlinkSync(join('open', 'link'), join(base, 'through'));
    // It ends in a private directory, and others can make it end elsewhere.
    expect(exposureOf(join(base, 'through', 'state'))).toMatchObject({ path: open });
    chmodSync(join(base, 'real'), 0o777);
    expect(exposureOf(join(base, 'home'))).toMatchObject({ path: join(base, 'real') });
  });

  test('that loops is left to whoever opens it', () => {
    const base = temporaryDirectory();
    symlinkSync('b', join(base, 'a'));
    symlinkSync('a', join(base, 'b'));
    expect(exposureOf(join(base, 'a', 'c'))).toBeUndefined();
  });

  test('of an installation is refused with a remedy, and nothing is created there', () => {
    const home = openToAll(join(temporaryDirectory(), 'my home'));
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    expect(() => requirePrivate(here)).toThrow(
      expect.objectContaining({
        code: 'ERR_NOT_PRIVATE',
        message: expect.stringContaining(`${home} can be written by other users`),
        advice: expect.stringMatching(/^Run `chmod go-w '.*my home'`\. Otherwise: set RDCTL_HOME to /),
      }),
    );
    expect(readdirSync(home)).toEqual([]);
    chmodSync(home, 0o755);
    expect(() => requirePrivate(here)).not.toThrow();
  });

  test.each([
    'state',
    'config',
    'logs',
    'cache',
    'state/drivers',
    'state/tokens',
    'snapshots',
    'extensions',
    'guest-images',
  ])('of an installation is refused when all may write its %s', (name) => {
    const home = temporaryDirectory();
    const path = openToAll(join(home, name));
    expect(() => requirePrivate(places({ RDCTL_HOME: home }, 'linux', ''))).toThrow(path);
  });

  test.each(['config/settings.json', 'state/state.json', 'app-engine.json'])(
    'of an installation is refused when all may write its %s',
    (name) => {
      const home = temporaryDirectory();
      const path = join(home, name);
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, '{}');
      chmodSync(path, 0o666);
      expect(() => requirePrivate(places({ RDCTL_HOME: home }, 'linux', ''))).toThrow(path);
    },
  );

  test.runIf(process.getuid?.() === 0)(
    'that another user creates after the look is refused, and nothing is created there',
    async () => {
      const shared = openToAll(join(temporaryDirectory(), 'shared'));
      chmodSync(shared, 0o1777);
      const elsewhere = openToAll(join(temporaryDirectory(), 'elsewhere'));
      const plants = {
        directory: (path: string) => mkdirSync(path),
        link: (path: string) => symlinkSync(elsewhere, path),
      };
      for (const [name, plant] of Object.entries(plants)) {
        const home = join(shared, name);
        const here = places({ RDCTL_HOME: home }, 'linux', '');
        requirePrivate(here);
        plant(home);
        lchownSync(home, 65534, 65534);
        await expect(makeDirectory(here.logs)).rejects.toMatchObject({
          code: 'ERR_NOT_PRIVATE',
          message: `another user (uid 65534) has just created ${home}, so nothing is kept there`,
        });
        expect(readdirSync(home)).toEqual([]);
      }
    },
  );

  test('in a directory for everyone is created, by two at once as well', async () => {
    const shared = openToAll(join(temporaryDirectory(), 'shared'));
    chmodSync(shared, 0o1777);
    for (const faster of [false, true]) {
      const home = join(shared, `home-${faster}`);
      const here = places({ RDCTL_HOME: home }, 'linux', '');
      requirePrivate(here);
      if (faster) mkdirSync(home, { mode: 0o700 });
      await makeDirectory(here.logs);
      expect(() => requirePrivate(here)).not.toThrow();
      expect(readdirSync(home)).toEqual(['logs']);
    }
  });

  test.runIf(process.getuid?.() === 0)('of another user is refused to root, naming its owner', () => {
    const home = temporaryDirectory();
    chownSync(home, 65534, 65534);
    expect(() => requirePrivate(places({ RDCTL_HOME: home }, 'linux', ''))).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(/ belongs to another user \(owner nobody, mode 0700, and you are root\), so /),
        advice: expect.stringMatching(/^Set RDCTL_HOME to a directory that only you can write/),
      }),
    );
  });
});
