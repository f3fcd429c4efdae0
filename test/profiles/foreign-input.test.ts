import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Every command that reads settings or profiles, with the file as its last argument. */
const READERS = {
  validate: ['validate'],
  'profile check': ['profile', 'check'],
  'create-profile': ['create-profile', '--output', 'plist', '--input'],
  'import-profile': ['import-profile'],
  'profile upgrade': ['profile', 'upgrade', '--dry-run'],
  'diff, two files': ['diff', '-f'],
};

/** What a command says of a file. */
async function read(argv: readonly string[], name: string, content: string | Uint8Array) {
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, name), content);
  const { exit, err, out } = await rdctl([...argv, name], { cwd, env: { RDCTL_HOME: join(cwd, 'home') } });
  return { exit, said: `${out}${err}` };
}

const ADMIN = JSON.stringify({
  configurationFileVersion: 2,
  exposeDockerAPIOnTCP2375: { locked: true, value: false },
  kubernetes: { locked: false, enabled: false, showSystemContainers: false },
});

describe.each(Object.entries(READERS))('%s', (name, argv) => {
  test("refuses Docker Desktop's admin-settings.json, and says what it is", async () => {
    const { exit, said } = await read(argv, 'admin-settings.json', ADMIN);
    expect(exit).not.toBe(0);
    expect(said).toContain('admin-settings.json of Docker Desktop');
  });

  test.each([
    ['with a mark', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['without', (text: string) => Buffer.from(text, 'utf16le')],
    ['big-endian', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ])('says of UTF-16 %s what to do', async (_kind, encoded) => {
    const { exit, said } = await read(argv, 'p.json', encoded('{"version": 19, "images": {"showAll": true}}'));
    expect(exit).not.toBe(0);
    expect(said).toContain('UTF-16; save it as UTF-8');
  });

  test.each(['{ /* x */ "version": 19, "images": {"showAll": false} }', '{\n// x\n"version": 19 }'])(
    'refuses a comment in JSON with its position: %s',
    async (text) => {
      const { exit, said } = await read(argv, 'p.json', text);
      expect(exit).not.toBe(0);
      expect(said).toMatch(/p\.json:[12]:[13]: (?:comments are not allowed in JSON|a key begins with "\/[*/]")/);
    },
  );

  if (name !== 'import-profile') {
    test('reads a profile in the flow style of YAML', async () => {
      const text =
        '{ apiVersion: rdctl/v1, kind: Profile, settings: { version: 19, images: { showAll: false } } } # mine\n';
      expect((await read(argv, 'p.yaml', text)).said).not.toMatch(/comments are not allowed|error in json/);
    });
  }
});

test('--body is JSON: a comment does not take the setting after it along', async () => {
  const body = '{ /* x */ "images": { "namespace": "n1" } }';
  const { exit, err, out } = await rdctl(['create-profile', '--output', 'plist', '--body', body]);
  expect([exit, out]).toEqual([1, '']);
  expect(err).toContain('--body:1:3: comments are not allowed in JSON');
});

test.each([
  ['settings: { version: 19, memory: 8GB }\n', 'did you mean virtualMachine.memoryInGB: 8?'],
  ['settings: { version: 19, virtualMachine: { memory: 8 } }\n', 'did you mean virtualMachine.memoryInGB: 8?'],
  ['settings: { version: 19, virtualMachine: { cpus: 4 } }\n', 'did you mean virtualMachine.numberCPUs: 4?'],
  ['settings: { version: 19, virtualMachine: { memoryInGB: 8GB } }\n', 'did you mean 8?'],
  ['settings: { version: 19, virtualMachine: { memoryInGB: "8 GiB" } }\n', 'did you mean 8?'],
  ['settings: { version: 19 }\nmemory: 8GiB\n', 'did you mean settings.virtualMachine.memoryInGB: 8?'],
  ['settings: { version: 19 }\ncpus: a few\n', 'did you mean settings.virtualMachine.numberCPUs?'],
])('names of other products get the name here: %j', async (text, hint) => {
  const { exit, said } = await read(['validate'], 'p.yaml', `apiVersion: rdctl/v1\nkind: Profile\n${text}`);
  expect(exit).toBe(3);
  expect(said).toContain(hint);
});
