import { rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Connection } from '../../src/drivers/machines/qemu/guest.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { qemuShell } from '../../src/drivers/machines/qemu/shell.ts';
import { RdError } from '../../src/errors.ts';
import { steadyClock } from '../../src/os/clock.ts';
import type { RunOptions } from '../../src/os/run.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A guest that records the commands it gets. */
function scene(run = '/r') {
  const forwards: string[] = [];
  const lines = { held: 0 };
  const asked: { argv: readonly string[]; options: RunOptions }[] = [];
  const guest: Connection = {
    async run(argv, options = {}) {
      asked.push({ argv, options });
      return { exitCode: 0, stdout: '', stderr: '' };
    },
    async *stream() {},
    converse: () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'nothing converses')),
    async forward(_order, _option, words) {
      forwards.push(words ?? '');
      return '';
    },
    connect: async () => undefined,
    isConnected: async () => true,
    sessions: () => 0,
    onReconnect: () => undefined,
    close: async () => undefined,
  };
  const shell = qemuShell({
    hold: async () => undefined,
    held: () => lines.held,
    places: { ...qemuPlaces('/d', '/r'), run },
    guest,
    environment: {},
    claim: async () => () => undefined,
    portConflict: async () => undefined,
    clock: steadyClock,
    log: () => undefined,
  });
  return { asked, shell, forwards, lines };
}

test('a canceled cleanup removes nothing later, because another engine may run by then', async () => {
  const { asked, shell } = scene();
  await shell.clear({ containerd: '/run/c.sock', state: '/run/state', directories: ['/data'] });
  const [{ argv, options } = { argv: [], options: {} }] = asked;
  const [program, kill, seconds, ...rest] = argv;
  expect(program).toBe('timeout');
  const most = Number(seconds) + Number(kill?.replace('--kill-after=', ''));
  expect(most * 1000).toBeLessThan(options.timeoutMs ?? 0);
  expect(rest).toEqual(['sh', '-s', '--', '/run/c.sock', '/run/state', '', '/data']);
});

test('while a connection to a socket is held, no other one shows whether it leads into the guest', async () => {
  const { shell, forwards, lines } = scene(temporaryDirectory());
  const look = () => shell.localSocket('/run/rdctl/moby/docker.sock');
  const held = () => shell.holds('/run/rdctl/moby/docker.sock');
  expect(await held()).toBe(false);
  const local = await look();
  // Where any connection fails.
  writeFileSync(local, '');
  lines.held = 1;
  expect(await look()).toBe(local);
  expect(await held()).toBe(true);
  expect(forwards).toHaveLength(1);
  // Removed by somebody: what is held leads there, and clients do not.
  rmSync(local);
  expect(await held()).toBe(false);
  expect(await look()).toBe(local);
  expect(forwards).toHaveLength(2);
  writeFileSync(local, '');
  lines.held = 0;
  expect(await held()).toBe(false);
  expect(await look()).toBe(local);
  expect(forwards).toHaveLength(3);
});
