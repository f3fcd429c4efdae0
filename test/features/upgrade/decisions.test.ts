import { describe, expect, test } from 'vitest';
import { ownTarget, TARGETS } from '../../../release/targets.ts';
import { decide } from '../../../src/features/upgrade/decision.ts';
import { originOfFile, originOfScript } from '../../../src/features/upgrade/installation.ts';
import { parseAllowedSigners } from '../../../src/features/upgrade/signers.ts';
import { fileInSums, isVersion, targetSuffix } from '../../../src/features/upgrade/sums.ts';

const nothing = (because: string) => ({ do: 'nothing', because });
const install = (way: string) => ({ do: 'install', way });

test.each([
  ['0.1.0', '0.2.0', false, install('newer')],
  ['0.2.0', '0.10.0', false, install('newer')],
  ['0.2.0', '0.2.0', false, nothing('current')],
  ['0.2.0', '0.2.0', true, nothing('current')],
  ['0.2.0', '0.1.9', false, nothing('older')],
  ['0.2.0', '0.1.9', true, install('older')],
  ['0.2.0', '0.3.0-rc.1', false, nothing('prerelease')],
  ['0.2.0', '0.3.0-rc.1', true, install('newer')],
  ['0.3.0-rc.1', '0.3.0-rc.2', false, install('newer')],
  ['0.3.0-rc.2', '0.3.0', false, install('newer')],
  ['0.3.0', '0.3.0-rc.2', false, nothing('older')],
  ['0.3.0', '0.3.0-rc.2', true, install('older')],
] as const)('%s, where %s is found (named: %s)', (current, found, named, decision) => {
  expect(decide({ current, found, named })).toEqual(decision);
});

describe('the sums', () => {
  const sum = 'ab'.repeat(32);
  const line = (name: string) => `${sum}  ${name}\n`;
  const own = 'rdctl-0.2.0-linux-x64';
  const others = [
    'rdctl-0.2.0-linux-arm64',
    `${own}.cdx.json`,
    'rdctl-0.2.0-licenses.txt',
    'manifests/homebrew/rdctl.rb',
  ];

  test('name the file of a target with its version', () => {
    const text = [own, ...others].map(line).join('');
    expect(fileInSums(text, 'linux-x64', '0.2.0')).toEqual({ version: '0.2.0', name: own, sha256: sum });
    const rc = line('rdctl-0.2.0-rc.1-windows-x64.exe');
    expect(fileInSums(rc, 'windows-x64.exe', '0.2.0-rc.1')).toMatchObject({ version: '0.2.0-rc.1' });
  });

  test.each([
    ['without the target', others.map(line).join(''), 'it has no file for linux-x64'],
    ['that are empty', '', 'it has no file for linux-x64'],
    [
      'of another version',
      line('rdctl-0.1.0-linux-x64'),
      'the signed file in the place of 0.2.0 is rdctl-0.1.0-linux-x64',
    ],
    ['of two versions', line(own) + line('rdctl-0.3.0-linux-x64'), 'it has more than one file'],
    ['with a file twice', line(own) + line(own), 'it has more than one file'],
    ['without a version', line('rdctl--linux-x64'), 'it has no file'],
    ['with a short sum', `abab  ${own}\n`, 'a line that is no sum'],
    ['with a path out of the directory', line(`../${own}`).replace('../', '/../'), 'a line that is no sum'],
  ])('%s are refused', (_, text, why) => {
    expect(() => fileInSums(text, 'linux-x64', '0.2.0')).toThrow(why);
  });

  test('are named for the targets that the release has', () => {
    expect(targetSuffix('win32', 'x64')).toBe('windows-x64.exe');
    for (const { name, format } of TARGETS) {
      const platform = name.startsWith('windows') ? 'win32' : name.startsWith('darwin') ? 'darwin' : 'linux';
      const arch = name.split('-')[1] ?? '';
      expect(ownTarget(platform, arch)?.name).toBe(name);
      expect(targetSuffix(platform, arch)).toBe(`${name}${format === 'pe' ? '.exe' : ''}`);
    }
  });
});

test('versions are three numbers, perhaps with a prerelease', () => {
  for (const good of ['0.1.0', '10.20.30', '1.0.0-rc.1']) expect(isVersion(good)).toBe(true);
  for (const bad of [
    '',
    '1',
    '1.0',
    'v1.0.0',
    '01.0.0',
    '1.0.0+x',
    '1.0.0 ',
    '../1.0.0',
    '1.0.0-a/b',
    `1.0.0-${'x'.repeat(70)}`,
  ])
    expect(isVersion(bad)).toBe(false);
});

describe('allowed signers', () => {
  const one = 'AAAAC3NzaC1lZDI1NTE5AAAAIH/WCU9jJP9jDwh5ofiPXVRNAAlYpwJ0HpFpwTclQMUR';
  const key = Buffer.from(one, 'base64');

  test.each([
    `release ssh-ed25519 ${one}`,
    `release ssh-ed25519 ${one} a comment\n`,
    `# mine\r\n\r\nrelease\tssh-ed25519 ${one}\r\n`,
    `release,other namespaces="rdctl-release" ssh-ed25519 ${one}`,
    `other cert-authority ssh-rsa AAAA\nrelease ssh-ed25519 ${one}`,
  ])('%j has the key', (text) => {
    expect(parseAllowedSigners(text, 'f')).toEqual([key]);
  });

  test.each([
    ['', 'f has no key for releases'],
    [`other ssh-ed25519 ${one}`, 'f has no key for releases'],
    [`*release ssh-ed25519 ${one}`, 'f has no key for releases'],
    [`ssh-ed25519 ${one}`, 'f:1 has a key without a name'],
    ['\nrelease ssh-rsa AAAA', 'f:2 has a key of the type "ssh-rsa", which is not supported'],
    [`release cert-authority ssh-ed25519 ${one}`, 'f:1 has the option "cert-authority", which is not supported'],
    [`release valid-before="20200101" ssh-ed25519 ${one}`, 'f:1 has the option "valid-before'],
    [`release namespaces="git" ssh-ed25519 ${one}`, 'f:1 has the option "namespaces'],
    ['release ssh-ed25519', 'f:1 has a damaged key'],
    [`release ssh-ed25519 ${one.slice(0, -4)}`, 'f:1 has a damaged key'],
    [`release ssh-ed25519 ${one}\nrelease ssh-ed25519 x`, 'f:2 has a damaged key'],
  ])('%j is refused', (text, why) => {
    expect(() => parseAllowedSigners(text, 'f')).toThrow(why);
  });
});

describe('what manages the program', () => {
  test.each([
    ['/usr/bin/rdctl', 'rdctl', 'sudo apt install ./rdctl_VERSION_ARCHITECTURE.deb'],
    ['/opt/homebrew/Cellar/rdctl/0.1.0/bin/rdctl', undefined, 'brew upgrade rdctl'],
    ['C:\\Users\\u\\scoop\\apps\\rdctl\\0.1.0\\rdctl.exe', undefined, 'scoop update rdctl'],
    [
      'C:\\Users\\u\\AppData\\Local\\Microsoft\\WinGet\\Packages\\rdctl\\rdctl.exe',
      undefined,
      'winget upgrade rdctl.rdctl',
    ],
  ])('%s', (file, debianPackage, command) => {
    expect(originOfFile(file, debianPackage)?.advice).toContain(command);
  });

  test('is nothing for a file that somebody copied', () => {
    for (const file of ['/usr/local/bin/rdctl', '/home/u/bin/rdctl', 'C:\\tools\\rdctl.exe']) {
      expect(originOfFile(file, undefined)).toBeUndefined();
    }
  });

  test('is npm or a clone for a script', () => {
    expect(originOfScript('/usr/lib/node_modules/@rdctl/rdctl/dist/rdctl.cjs').advice).toContain(
      'npm install --global',
    );
    expect(originOfScript('/home/u/rdctl/dist/rdctl.cjs').advice).toContain('git pull && npm ci');
  });
});
