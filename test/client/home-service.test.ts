import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { homeService } from '../../src/client/home-service.ts';
import { startAdvice } from '../../src/client/session/missing.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { lockHome } from '../../src/state/home-lock.ts';
import { type Places, places } from '../../src/state/places.ts';
import { saveState } from '../../src/state/state-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const home = (): Places => places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '');
const recorded = (where: Places, driver: string) =>
  saveState(where.stateFile, {
    driver,
    power: 'started',
    generation: 1,
    ...DEFAULT_BLOCKS,
  });

/** A lock whose holder has exited; no process has such a pid. */
function dead(where: Places, since = Date.now()): void {
  mkdirSync(where.serviceLock, { recursive: true });
  const entry = { pid: 2 ** 30, started: 'x', since: new Date(since).toISOString(), held: true };
  writeFileSync(join(where.serviceLock, 'x.json'), JSON.stringify(entry));
}

test('a new home has no service, and looking creates nothing', async () => {
  const where = home();
  expect(await homeService(where)).toEqual({ kind: 'none' });
});

test('finds a service by its lock, then its connection file, then its lock again', async () => {
  const where = home();
  const lock = await lockHome(where.serviceLock, where.data);
  await lock.update({ port: 6107 });
  expect(await homeService(where)).toMatchObject({ kind: 'passing', holder: { pid: process.pid, port: 6107 } });
  await lock.update({ announced: true });
  expect(await homeService(where)).toMatchObject({ kind: 'running', holder: { pid: process.pid, port: 6107 } });
  await lock.update({ ending: true });
  expect(await homeService(where)).toMatchObject({ kind: 'passing', holder: { ending: true, announced: true } });
  await lock.update({ announced: false });
  expect(await homeService(where)).toMatchObject({ kind: 'passing' });
  await lock.release();
  expect(await homeService(where)).toEqual({ kind: 'none' });
});

test('a service that was killed leaves what a real driver runs', async () => {
  const where = home();
  dead(where);
  expect(await homeService(where)).toEqual({ kind: 'none' });
  await recorded(where, 'simulated');
  expect(await homeService(where)).toEqual({ kind: 'none', cut: 'killed' });
  await recorded(where, 'host');
  expect(await homeService(where)).toEqual({ kind: 'left', driver: 'host', pid: 2 ** 30 });
  const interrupted = 'Creating snapshot "x"';
  writeFileSync(where.backendLock, JSON.stringify({ action: interrupted, pid: 2 ** 30, started: 'then' }));
  const left = await homeService(where);
  expect(left).toEqual({ kind: 'left', driver: 'host', pid: 2 ** 30, interrupted });
  expect(startAdvice(left)).toBe(
    `The last service (pid ${2 ** 30}) exited without stopping its backend (driver host), which may still be running, unless it was stopped for an interrupted operation (Creating snapshot "x"): \`rdctl start\` takes it over, \`rdctl shutdown\` stops it.`,
  );
});

test.each(['', '{"format":1', '{"format":2}'])(
  'a state file of %j does not hide what a real driver left running',
  async (text) => {
    const where = home();
    dead(where);
    writeFileSync(where.stateFile, text);
    expect(await homeService(where)).toEqual({ kind: 'none' });
    mkdirSync(join(where.state, 'drivers', 'host'), { recursive: true });
    expect(await homeService(where)).toEqual({ kind: 'left', driver: 'host', pid: 2 ** 30 });
    // A newer release may know other drivers; it names the one.
    writeFileSync(where.stateFile, '{"format":2,"driver":"qemu"}');
    expect(await homeService(where)).toEqual({ kind: 'left', driver: 'qemu', pid: 2 ** 30 });
  },
);

test('finds the same by a connection file without a lock; nothing survives a reboot', async () => {
  const where = home();
  await recorded(where, 'host');
  expect(await homeService(where)).toEqual({ kind: 'none' });
  writeFileSync(where.connectionFile, '{}');
  expect(await homeService(where)).toEqual({ kind: 'left', driver: 'host' });
  const beforeBoot = Date.now() / 1000 - uptime() - 60;
  utimesSync(where.connectionFile, beforeBoot, beforeBoot);
  expect(await homeService(where)).toEqual({ kind: 'none', cut: 'reboot' });
  dead(where, beforeBoot * 1000);
  expect(await homeService(where)).toEqual({ kind: 'none', cut: 'reboot' });
});
