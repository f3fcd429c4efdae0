import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mobileconfigExporter } from '../../profiles/formats/mobileconfig.ts';
import { registryPolImporter } from '../../profiles/formats/pol.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import { readPolicies } from '../../profiles/policies/read.ts';
import { answering } from '../helpers/policy-programs.ts';

// The files that docs/policies.md offers to administrators as a starting point.

const FOLDER = 'examples/policies';
const DOMAIN = 'io.rancherdesktop.profile';
const file = (name: string) => join(FOLDER, name);
const json = (name: string) => JSON.parse(readFileSync(file(name), 'utf8'));

test('for Linux', async () => {
  const place = { format: 'json' as const, defaults: file('defaults.json'), locked: file('locked.json') };
  const sources = { places: [place], programs: answering({}).programs };
  const read = await readPolicies(sources, { platform: 'linux', arch: 'x64' });
  expect(read.warnings).toEqual([]);
  expect(read.defaults?.settings).toEqual(json('defaults.json'));
  expect(read.locked?.settings).toEqual(json('locked.json'));
});

test('for macOS: the same as property lists', async () => {
  const place = {
    format: 'plist' as const,
    defaults: file(`${DOMAIN}.defaults.plist`),
    locked: file(`${DOMAIN}.locked.plist`),
  };
  const { programs, calls } = answering({});
  const read = await readPolicies({ places: [place], programs }, { platform: 'darwin', arch: 'arm64' });
  expect(read.defaults?.settings).toEqual(json('defaults.json'));
  expect(read.locked?.settings).toEqual(json('locked.json'));
  expect(read.warnings).toEqual([]);
  expect(calls()).toEqual([]);
});

test.each(['locked', 'defaults'] as const)(
  'for macOS by MDM: the %s file as create-profile writes it',
  async (part) => {
    const text = readFileSync(file(`${DOMAIN}.${part}.mobileconfig`), 'utf8');
    const tree = await deploymentTree(json(`${part}.json`));
    expect(text).toBe(mobileconfigExporter.text(tree, { part, hive: 'hklm' }));
  },
);

test('for Windows: the same locks, and defaults without unsupported settings', async () => {
  const key = 'HKLM\\SOFTWARE\\Policies\\Rancher Desktop';
  const { programs } = answering({
    [`query ${key}`]: { out: key },
    [`export ${key}`]: { file: readFileSync(file('policies.reg')).toString('base64') },
  });
  const places = [{ format: 'registry' as const, key }];
  const read = await readPolicies({ places, programs }, { platform: 'win32', arch: 'x64' });
  expect(read.warnings).toEqual([]);
  expect(read.locked?.settings).toEqual(json('locked.json'));
  const { virtualMachine: _machine, application, ...rest } = json('defaults.json');
  expect(read.defaults?.settings).toEqual({
    ...rest,
    application: { autoStart: application.autoStart },
    WSL: { integrations: { Ubuntu: true } },
  });
});

test('for Windows, as Group Policy stores it: the same locks', async () => {
  const parts = await registryPolImporter.read(readFileSync(file('Registry.pol')), 'Registry.pol');
  expect(parts.map(({ part }) => part)).toEqual(['locked']);
  expect(parts[0]?.settings).toEqual(json('locked.json'));
});

test('the table of examples lists every file', () => {
  const table = readFileSync('examples/README.md', 'utf8');
  const names = readdirSync(FOLDER).map((name) => name.replace(/\.(defaults|locked)\./, '.*.'));
  expect(names.filter((name) => !table.includes(`\`${name}\``))).toEqual([]);
});

test('for Windows: as the registry editor writes it, which keeps its list', () => {
  const bytes = readFileSync(file('policies.reg'));
  expect([...bytes.subarray(0, 2)]).toEqual([0xff, 0xfe]);
  expect(bytes.toString('utf16le').replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
});
