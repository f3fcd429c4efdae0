import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'plist';
import { expect, test } from 'vitest';
import { manageAutostart, runKeyWith } from '../../../src/features/host-integration/launcher.ts';
import type { IntegrationTargets } from '../../../src/features/host-integration/targets.ts';
import { testTargets } from '../../helpers/integration-targets.ts';

function entryOf({ autostartFile = '' }: IntegrationTargets): string {
  return readFileSync(autostartFile, 'utf8');
}

test('Linux: a desktop entry starts the launcher, and is removed with its directories', async () => {
  const targets = testTargets();
  expect(await manageAutostart(true, targets)).toMatchObject({ part: 'autostart', state: 'managed' });
  expect(entryOf(targets)).toContain(`\nExec="${targets.bin}/rdctl" start\n`);
  expect(entryOf(targets).startsWith('[Desktop Entry]\nType=Application\n')).toBe(true);
  const before = entryOf(targets);
  await manageAutostart(true, targets);
  expect(entryOf(targets)).toBe(before);
  expect(await manageAutostart(false, targets)).toMatchObject({ state: 'clean' });
  expect(readdirSync(targets.home)).toEqual(['.local']);
  expect(await manageAutostart(false, targets)).toMatchObject({ state: 'clean' });
});

test('Linux: escapes in a desktop entry', async () => {
  const targets = { ...testTargets(), bin: '/a b/100%/$x"`\\' };
  await manageAutostart(true, targets);
  expect(entryOf(targets)).toContain('\nExec="/a b/100%%/\\\\$x\\\\"\\\\`\\\\\\\\/rdctl" start\n');
});

test('macOS: a launch agent', async () => {
  const linux = testTargets();
  const autostartFile = join(linux.home, 'Library', 'LaunchAgents', 'io.rdctl.autostart.plist');
  const targets: IntegrationTargets = { ...linux, platform: 'darwin', autostartFile, bin: '/a & b' };
  await manageAutostart(true, targets);
  expect(parse(entryOf(targets))).toMatchObject({
    Label: 'io.rdctl.autostart',
    ProgramArguments: ['/a & b/rdctl', 'start'],
    RunAtLoad: true,
  });
  await manageAutostart(false, targets);
  expect(readdirSync(linux.home)).toEqual(['.local']);
});

test.each([false, true])('a foreign entry is neither changed nor removed; drop-in mode %j', async (dropIn) => {
  const targets = testTargets({ dropIn });
  const { autostartFile = '' } = targets;
  mkdirSync(dirname(autostartFile), { recursive: true });
  writeFileSync(autostartFile, '[Desktop Entry]\nExec=mine\n');
  for (const wanted of [true, false]) {
    expect(await manageAutostart(wanted, targets)).toMatchObject({ state: 'left' });
    expect(entryOf(targets)).toBe('[Desktop Entry]\nExec=mine\n');
  }
});

test('Windows: a registry value, through reg.exe', async () => {
  const { autostartFile: _, ...linux } = testTargets();
  const targets: IntegrationTargets = { ...linux, platform: 'win32', bin: 'C:\\Users\\a b\\bin' };
  const calls: (readonly string[])[] = [];
  let value: string | undefined;
  const runKey = runKeyWith(async (argv) => {
    calls.push(argv);
    if (argv[1] === 'add') value = argv[8];
    if (argv[1] === 'delete') value = undefined;
    if (argv[1] !== 'query') return { exitCode: 0, stdout: '', stderr: '' };
    const stdout = `\r\nHKEY_CURRENT_USER\\Software\\…\\Run\r\n    rdctl    REG_SZ    ${value}\r\n\r\n`;
    return value === undefined ? { exitCode: 1, stdout: '', stderr: '' } : { exitCode: 0, stdout, stderr: '' };
  });
  await manageAutostart(false, targets, { runKey });
  expect(calls.map(([, verb]) => verb)).toEqual(['query']);
  expect(await manageAutostart(true, targets, { runKey })).toEqual({
    part: 'autostart',
    file: 'HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Run\\rdctl',
    state: 'managed',
  });
  expect(calls.at(-1)).toEqual([
    'reg.exe',
    'add',
    'HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Run',
    '/v',
    'rdctl',
    '/t',
    'REG_SZ',
    '/d',
    '"C:\\Users\\a b\\bin\\rdctl.cmd" start',
    '/f',
  ]);
  await manageAutostart(false, targets, { runKey });
  expect(calls.slice(-2).map(([, verb]) => verb)).toEqual(['query', 'delete']);

  value = 'C:\\Program Files\\Rancher Desktop\\Rancher Desktop.exe';
  for (const wanted of [true, false]) {
    expect(await manageAutostart(wanted, targets, { runKey })).toMatchObject({ state: 'left' });
    expect(calls.at(-1)?.[1]).toBe('query');
  }
});

test('Windows: a failing reg.exe is reported', async () => {
  const { autostartFile: _, ...linux } = testTargets();
  const runKey = runKeyWith(async () => {
    throw new Error('access is denied');
  });
  expect(await manageAutostart(true, { ...linux, platform: 'win32' }, { runKey })).toMatchObject({
    state: 'failed',
    message: 'access is denied',
  });
});
