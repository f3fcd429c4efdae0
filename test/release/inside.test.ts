import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describe as describePackages } from '../../release/inside.ts';
import { packageLicenses } from '../../release/licenses.ts';
import { packagesInside } from '../../release/packages-inside.ts';
import { sbom } from '../../release/sbom.ts';
import { fileName, ownTarget, TARGETS, targetsNamed } from '../../release/targets.ts';

const build = (inputs: Record<string, number>) => ({
  outputs: {
    one: {
      inputs: Object.fromEntries(Object.entries(inputs).map(([path, bytes]) => [path, { bytesInOutput: bytes }])),
    },
  },
});

test('a package is inside when a byte of it is, in the folder it came from', () => {
  const builds = [
    build({ 'src/a.ts': 5, 'node_modules/yaml/dist/index.js': 3, 'node_modules/unused/index.js': 0 }),
    build({
      'node_modules/@clack/prompts/dist/x.mjs': 1,
      'node_modules/light-my-request/node_modules/cookie/index.js': 9,
      'node_modules/yaml/dist/other.js': 1,
    }),
  ];
  expect(packagesInside(builds)).toEqual([
    'node_modules/@clack/prompts',
    'node_modules/light-my-request/node_modules/cookie',
    'node_modules/yaml',
  ]);
});

test('licenses are whole, and one that nobody can read fails the build', () => {
  const packages = describePackages(['node_modules/fastify', 'node_modules/abstract-logging']);
  const text = packageLicenses(packages);
  expect(text).toContain(readFileSync('node_modules/fastify/LICENSE', 'utf8').trim());
  expect(text).toMatch(/^abstract-logging \d+\.\d+\.\d+ \(MIT\)$/m);
  expect(() => describePackages(['node_modules/no-such'])).toThrow('package-lock.json does not have');
});

test('a bill of materials depends on the bytes of the file, and on nothing else', () => {
  const [target] = TARGETS;
  if (!target) throw new Error('no target');
  const packages = describePackages(['node_modules/fastify', 'node_modules/@clack/prompts']);
  const bill = (sha256: string) => sbom({ name: 'rdctl-1-x', version: '1', target, sha256 }, packages);
  expect(bill('a')).toBe(bill('a'));
  const { serialNumber, components } = JSON.parse(bill('a'));
  expect(serialNumber).not.toBe(JSON.parse(bill('b')).serialNumber);
  expect(serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(components[1]).toMatchObject({ group: '@clack', name: 'prompts', hashes: [{ alg: 'SHA-512' }] });
  expect(components[1].purl).toMatch(/^pkg:npm\/%40clack\/prompts@/);
  expect(components[2].components.map((each: { name: string }) => each.name)).not.toContain('libuv');
});

test('targets have names, files and digests of their own', () => {
  expect(TARGETS.map((each) => fileName('1.2', each))).toEqual([
    'rdctl-1.2-linux-x64',
    'rdctl-1.2-linux-arm64',
    'rdctl-1.2-darwin-arm64',
    'rdctl-1.2-darwin-x64',
    'rdctl-1.2-windows-x64.exe',
  ]);
  expect(new Set(TARGETS.map((each) => each.integrity)).size).toBe(TARGETS.length);
  expect(ownTarget('win32', 'x64')?.name).toBe('windows-x64');
  expect(ownTarget('linux', 's390x')).toBeUndefined();
  expect(targetsNamed('linux-x64,darwin-x64').map((each) => each.name)).toEqual(['linux-x64', 'darwin-x64']);
  expect(() => targetsNamed('linux-x86')).toThrow('there is no target "linux-x86": linux-x64,');
});
