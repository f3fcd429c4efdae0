import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { commandHelp, rootHelp } from '../../cli/help.ts';

const CLASSIC = [
  'extension',
  'serve',
  'start',
  'shutdown',
  'list-settings',
  'set',
  'api',
  'version',
  'info',
  'help',
  'shell',
  'create-profile',
  'completion',
  'reset',
  'factory-reset',
  'setup',
  'paths',
];

async function helpOf(name: string, platform: NodeJS.Platform = 'linux'): Promise<string> {
  const entry = COMMANDS.find((each) => each.name === name);
  if (!entry) throw new Error(`no command ${name}`);
  return commandHelp(await entry.load(), platform);
}

function flagsOf(help: string): string[] {
  const own = help.slice(0, help.indexOf('Flags of every command:'));
  return [...own.matchAll(/^ {2}(?:-\w, | {4})--(\S+)/gm)].map((match) => match[1] ?? '');
}

test('the help of the tool', async () => {
  await expect(rootHelp(COMMANDS)).toMatchFileSnapshot('../golden/help/rdctl.txt');
});

test.each(CLASSIC)('the help of %s', async (name) => {
  await expect(await helpOf(name)).toMatchFileSnapshot(`../golden/help/${name}.txt`);
});

describe.each(COMMANDS.map(({ name }) => name))('%s', (name) => {
  test.each(['linux', 'darwin', 'win32'] as const)(
    'fits a terminal, in alphabetical order, on %s',
    async (platform) => {
      const help = await helpOf(name, platform);
      const long = help.split('\n').filter((line) => line.length > 80);
      expect(long).toEqual([]);
      const flags = flagsOf(help);
      expect(flags).toEqual([...flags].sort());
    },
  );
});

test('flags of other platforms and hidden ones are not listed', async () => {
  const linux = flagsOf(await helpOf('set'));
  expect(linux).toContain('virtual-machine.memory-in-gb');
  expect(linux).not.toContain('virtual-machine.type');
  expect(linux).not.toContain('container-engine');
  expect(linux).not.toContain('application.extensions.allowed.enabled');
  expect(flagsOf(await helpOf('set', 'darwin'))).toContain('virtual-machine.type');
  expect(flagsOf(await helpOf('set', 'win32'))).toContain('experimental.virtual-machine.proxy.port');
  expect(flagsOf(await helpOf('serve'))).not.toContain('power');
});

test('the reference names every command', () => {
  const reference = readFileSync('docs/commands.md', 'utf8');
  expect(
    COMMANDS.map(({ name }) => name).filter((name) => !/NoDesc$/.test(name) && !reference.includes(`\`${name}`)),
  ).toEqual([]);
});
