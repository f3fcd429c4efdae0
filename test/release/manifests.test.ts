import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { manifests } from '../../release/manifests.ts';
import { fileName, TARGETS } from '../../release/targets.ts';

const base = 'https://example.test/v1.2.3/';
const sums = Object.fromEntries(
  TARGETS.map((target, index) => [
    target.name,
    { file: fileName('1.2.3', target), sha256: `${index}`.repeat(64).slice(0, 64) },
  ]),
);
const all = manifests({ version: '1.2.3', base, sums });

test('each manifest has the address and the sum of its file, and says that it is untested', () => {
  expect([...all.keys()].sort()).toEqual([
    'homebrew/rdctl.rb',
    'scoop/rdctl.json',
    'winget/rdctl.rdctl.installer.yaml',
    'winget/rdctl.rdctl.locale.en-US.yaml',
    'winget/rdctl.rdctl.yaml',
  ]);
  for (const text of all.values()) expect(text).toContain('never tried');
  const formula = all.get('homebrew/rdctl.rb');
  for (const name of ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']) {
    const { file, sha256 } = sums[name] ?? {};
    expect(formula).toContain(`url "https://example.test/v1.2.3/${file}"\n      sha256 "${sha256}"`);
  }
  const url = 'https://example.test/v1.2.3/rdctl-1.2.3-windows-x64.exe';
  const scoop = JSON.parse(all.get('scoop/rdctl.json') ?? '');
  expect(scoop.architecture['64bit']).toEqual({
    url,
    hash: sums['windows-x64']?.sha256,
    bin: [['rdctl-1.2.3-windows-x64.exe', 'rdctl']],
  });
  const installer = parse(all.get('winget/rdctl.rdctl.installer.yaml') ?? '');
  expect(installer).toMatchObject({
    PackageIdentifier: 'rdctl.rdctl',
    PackageVersion: '1.2.3',
    InstallerType: 'portable',
    Installers: [{ Architecture: 'x64', InstallerUrl: url, InstallerSha256: sums['windows-x64']?.sha256 }],
    ManifestType: 'installer',
  });
});

test('files that were not built have no manifest, and an address must be https', () => {
  const { 'linux-x64': linux } = sums;
  expect(manifests({ version: '1.2.3', base, sums: linux ? { 'linux-x64': linux } : {} }).size).toBe(0);
  for (const wrong of ['http://example.test', 'example.test', 'https://example.test/"#{x}']) {
    expect(() => manifests({ version: '1.2.3', base: wrong, sums })).toThrow('--base-url must be an https address');
  }
});
