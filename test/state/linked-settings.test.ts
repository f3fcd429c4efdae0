import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { homeLogs } from '../../src/drivers/log-places.ts';
import { journalFile, writeJournal } from '../../src/features/snapshots/journal.ts';
import { recoverBackend } from '../../src/features/snapshots/recovery.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { saveDesired } from '../../src/state/desired-write.ts';
import { sweepDrafts } from '../../src/state/own-files.ts';
import { places } from '../../src/state/places.ts';
import { loadSettings, saveSettings } from '../../src/state/settings-file.ts';
import { startupSettings } from '../../src/state/startup-settings.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HOST = { platform: 'linux', arch: 'x64' } as const;
const OLD = defaultSettings(HOST);
const NEW = { ...OLD, virtualMachine: { ...OLD.virtualMachine, memoryInGB: 9 } };

/** A home whose settings are a link to a file that `stow` and similar programs keep. */
function dotfiles(content: string | undefined = text(OLD)) {
  const home = temporaryDirectory();
  const here = places({ RDCTL_HOME: home }, 'linux', '');
  mkdirSync(here.config);
  mkdirSync(here.state);
  mkdirSync(join(home, 'dotfiles'));
  const target = join(home, 'dotfiles', 'desktop.json');
  if (content !== undefined) writeFileSync(target, content, { mode: 0o640 });
  symlinkSync('../dotfiles/desktop.json', here.settingsFile);
  const isLink = () => lstatSync(here.settingsFile).isSymbolicLink();
  return { home, here, target, isLink };
}

function text(settings: object): string {
  return `${JSON.stringify(settings, null, 2)}\n`;
}

test('a write replaces the target, keeps its mode and the previous copy, and leaves the link, again and again', async () => {
  const { here, target, isLink } = dotfiles();
  for (const [settings, before] of [
    [NEW, OLD],
    [OLD, NEW],
  ] as const) {
    await saveSettings(here.settingsFile, here.previousSettingsFile, settings);
    expect(isLink()).toBe(true);
    expect(readFileSync(target, 'utf8')).toBe(text(settings));
    expect(statSync(target).mode & 0o777).toBe(0o640);
    expect(readFileSync(here.previousSettingsFile, 'utf8')).toBe(text(before));
    const copy = lstatSync(here.previousSettingsFile);
    expect([copy.isFile(), copy.mode & 0o777]).toEqual([true, 0o600]);
  }
  expect(readdirSync(join(target, '..'))).toEqual(['desktop.json']);
});

const elsewhere = (): string => {
  const file = join(temporaryDirectory(), 'theirs.json');
  writeFileSync(file, text(OLD));
  return file;
};

test.each([
  ['out of the home directory', 'outside of the home', (file: string) => symlinkSync(elsewhere(), file)],
  ['to nothing', 'dangling', (file: string) => symlinkSync('gone.json', file)],
  [
    'to a read-only file',
    'read-only',
    (file: string) => {
      writeFileSync(`${file}.target`, text(OLD), { mode: 0o444 });
      symlinkSync('settings.json.target', file);
    },
  ],
  [
    'to a file with a second name',
    'hard link',
    (file: string) => {
      writeFileSync(`${file}.target`, text(OLD));
      linkSync(`${file}.target`, `${file}.other`);
      symlinkSync('settings.json.target', file);
    },
  ],
  [
    'to a file that others can write',
    'can be written by other users',
    (file: string) => {
      writeFileSync(`${file}.target`, text(OLD));
      chmodSync(`${file}.target`, 0o666);
      symlinkSync('settings.json.target', file);
    },
  ],
])('a link %s is refused by name, before anything is written', async (_kind, why, link) => {
  const { here, home } = dotfiles();
  rmSync(here.settingsFile);
  link(here.settingsFile);
  const desired = { ...DEFAULT_BLOCKS, power: 'stopped', generation: 1 } as const;
  const write = saveDesired(here, 'simulated', {
    before: { ...desired, settings: OLD },
    next: { ...desired, settings: NEW, generation: 2 },
  });
  await expect(write).rejects.toMatchObject({ code: 'ERR_IO', message: expect.stringContaining(why) });
  await expect(write).rejects.toThrow(home);
  expect(lstatSync(here.settingsFile).isSymbolicLink()).toBe(true);
  expect(readdirSync(here.state)).toEqual([]);
  if (existsSync(here.settingsFile)) expect(readFileSync(here.settingsFile, 'utf8')).toBe(text(OLD));
});

test('a link to nothing is an error that names both, not a first run', async () => {
  const { here, target } = dotfiles();
  rmSync(target);
  const loading = loadSettings(here.settingsFile, here.previousSettingsFile, HOST);
  await expect(loading).rejects.toMatchObject({ code: 'ERR_SETTINGS_FILE' });
  await expect(loading).rejects.toThrow(`${here.settingsFile} is a link to ../dotfiles/desktop.json`);
});

test('a target that is not JSON is kept as a copy, once, and survives the next write', async () => {
  const { here, target } = dotfiles('{"version": 19, "appl');
  for (const now of [1_000, 2_000]) await startupSettings(here, { warnings: [], looked: [] }, HOST, now);
  const kept = readdirSync(here.config).filter((name) => name.includes('corrupt'));
  expect(kept).toHaveLength(1);
  await saveSettings(here.settingsFile, undefined, NEW);
  expect(readFileSync(join(here.config, kept[0] ?? ''), 'utf8')).toBe('{"version": 19, "appl');
  expect(readFileSync(target, 'utf8')).toBe(text(NEW));
});

test('the draft of a killed write is removed beside the target, and nothing else there', async () => {
  const { here, target } = dotfiles();
  const draft = (name: string) => join(target, '..', `.${name}.0123456789ab.tmp`);
  for (const name of ['desktop.json', 'notes.json']) writeFileSync(draft(name), 'half');
  expect(await sweepDrafts(here, Date.now())).toEqual([]);
  expect(readdirSync(join(target, '..')).sort()).toEqual(['.notes.json.0123456789ab.tmp', 'desktop.json']);
});

test('a restore that a kill interrupted puts the settings back through the link', async () => {
  const { here, target, isLink } = dotfiles(text(NEW));
  const settings = { before: { ...OLD }, after: { ...NEW } };
  await writeJournal(journalFile(here), { snapshot: 'one', phase: 'settings', parts: [], settings });
  const { undone } = await recoverBackend({ ...here, kept: [] });
  expect(undone).toMatchObject({ virtualMachine: { memoryInGB: 9 } });
  expect(isLink()).toBe(true);
  expect(readFileSync(target, 'utf8')).toBe(text(OLD));
});

test('the engine whose logs are shown is the one in linked settings', async () => {
  const settings = { ...OLD, containerEngine: { ...OLD.containerEngine, name: 'containerd' } };
  const { here } = dotfiles(text(settings));
  writeFileSync(here.stateFile, JSON.stringify({ driver: 'host', power: 'started', generation: 1 }));
  const { logs } = await homeLogs(here);
  expect(logs.engine).toEqual(logs.containerd);
});
