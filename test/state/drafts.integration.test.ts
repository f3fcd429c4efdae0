import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { sweepDrafts } from '../../src/state/own-files.ts';
import { type Places, places } from '../../src/state/places.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const DRAFT = (name: string) => `.${name}.0123456789ab.tmp`;
const WAY_BACK = `before-apply-${'0'.repeat(16)}.json`;

function write(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, 'x');
}

/** Of files that only the holder of the service lock writes. */
const own = (here: Places) => [
  ...['state.json', 'first-run.json', 'restore.json', 'copy.json', 'port-forwards.json'].map((name) =>
    join(here.state, DRAFT(name)),
  ),
  join(here.state, 'copy.json.new'),
  ...['settings.json', 'settings.previous.json'].map((name) => join(here.config, DRAFT(name))),
  join(here.data, DRAFT('app-engine.json')),
  join(here.data, DRAFT('backend.lock')),
  join(here.data, DRAFT('share-trial')),
  join(here.state, 'drivers', 'simulated', DRAFT('machine.json')),
  join(here.state, 'drivers', 'host', 'run', 'moby', DRAFT('daemon.json')),
];

/** Of files that commands write as well. */
const shared = (here: Places) => [
  join(here.state, DRAFT(WAY_BACK)),
  join(here.tokens, DRAFT('ci-bot.json')),
  join(here.bin, DRAFT('rdctl')),
  join(here.cache, 'downloads', DRAFT(`${'a'.repeat(64)}.json`)),
  join(here.cache, 'k3s', DRAFT('channels.json')),
];

/** Names that merely look similar. */
const others = (here: Places) => [
  join(here.data, DRAFT('notes.txt')),
  join(here.data, DRAFT('settings.json')),
  join(here.state, DRAFT('mine.json')),
  join(here.state, 'mine', DRAFT('state.json')),
  join(here.config, '.settings.json.0123456789ab.tmp~'),
  join(here.config, '.settings.json.0123456789AB.tmp'),
  join(here.config, 'settings.json.0123456789ab.tmp'),
  join(here.config, '.settings.json.bak.tmp'),
  join(here.state, WAY_BACK),
  join(here.state, 'drivers', 'host', 'data', DRAFT('x')),
  join(here.state, 'drivers', 'host', 'run', 'moby', 'rootfs', DRAFT('x')),
];

const there = (paths: string[]) => paths.filter((path) => existsSync(path));

test('our temporary files are removed, those of commands when they are older than any write, and nothing else', async () => {
  const here = places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '');
  for (const path of [...own(here), ...shared(here), ...others(here)]) write(path);
  mkdirSync(join(here.config, DRAFT('settings.json').replace('0', 'f')));
  expect(await sweepDrafts(here, Date.now())).toEqual([]);
  expect(there(own(here))).toEqual([]);
  expect(there(shared(here))).toEqual(shared(here));
  const longAgo = new Date(Date.now() - 3_700_000);
  for (const path of shared(here)) utimesSync(path, longAgo, longAgo);
  expect(await sweepDrafts(here, Date.now())).toEqual([]);
  expect(there(shared(here))).toEqual([]);
  expect(there(others(here))).toEqual(others(here));
});

test('links are not followed, and not removed', async () => {
  const here = places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '');
  const elsewhere = temporaryDirectory();
  write(join(elsewhere, DRAFT('machine.json')));
  write(join(elsewhere, DRAFT('settings.json')));
  mkdirSync(join(here.state, 'drivers', 'host'), { recursive: true });
  symlinkSync(elsewhere, here.config);
  symlinkSync(elsewhere, join(here.state, 'drivers', 'simulated'));
  symlinkSync(elsewhere, join(here.state, 'drivers', 'host', 'run'));
  symlinkSync(join(elsewhere, DRAFT('settings.json')), join(here.state, DRAFT('state.json')));
  expect(await sweepDrafts(here, Date.now())).toEqual([]);
  expect(readdirSync(elsewhere)).toHaveLength(2);
  expect(readdirSync(here.state)).toContain(DRAFT('state.json'));
});

test('a start removes what kills have left, including temporary files of locks', async () => {
  const home = temporaryDirectory();
  const here = places({ RDCTL_HOME: home }, 'linux', '');
  for (const path of own(here)) write(path);
  // No process has that pid.
  const lock = `4194305-${'0'.repeat(16)}.json.01234567`;
  const living = `${process.pid}-${'0'.repeat(16)}.json.01234567`;
  for (const name of [lock, living]) write(join(here.serviceLock, name));
  write(join(here.applyLock, lock));
  writeFileSync(join(here.applyLock, lock.slice(0, -9)), '{"pid":4194305,"since":"2030-01-01T00:00:00Z","held":true}');
  const { service } = await startService({ home, power: 'stopped' });
  expect(readdirSync(here.applyLock)).toEqual([]);
  expect(there(own(here))).toEqual([]);
  await service.stop('the test is over');
  expect(readdirSync(here.serviceLock)).toEqual([living]);
});
