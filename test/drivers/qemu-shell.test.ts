import { expect, test } from 'vitest';
import type { Connection } from '../../src/drivers/machines/qemu/guest.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { qemuShell } from '../../src/drivers/machines/qemu/shell.ts';
import { RdError } from '../../src/errors.ts';
import { steadyClock } from '../../src/os/clock.ts';
import type { RunOptions } from '../../src/os/run.ts';

/** A guest that records the commands it gets. */
function scene() {
  const asked: { argv: readonly string[]; options: RunOptions }[] = [];
  const guest: Connection = {
    async run(argv, options = {}) {
      asked.push({ argv, options });
      return { exitCode: 0, stdout: '', stderr: '' };
    },
    async *stream() {},
    converse: () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'nothing converses')),
    forward: async () => '',
    connect: async () => undefined,
    isConnected: async () => true,
    sessions: () => 0,
    onReconnect: () => undefined,
    close: async () => undefined,
  };
  const shell = qemuShell({
    hold: async () => undefined,
    held: () => 0,
    places: qemuPlaces('/d', '/r'),
    guest,
    environment: {},
    claim: async () => () => undefined,
    portConflict: async () => undefined,
    clock: steadyClock,
    log: () => undefined,
  });
  return { asked, shell };
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
