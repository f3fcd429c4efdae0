import { expect, test, vi } from 'vitest';
import { RdError } from '../../src/errors.ts';
import type { DeedSteps } from '../../src/plan/deed.ts';
import type { ExtensionStep } from '../../src/plan/extension-changes.ts';
import type { ForwardSteps } from '../../src/plan/port-forwards.ts';
import { createApplies } from '../../src/service/applies.ts';
import { statusWith } from '../helpers/plans.ts';

const FORWARD = { namespace: 'default', service: 'web', k8sPort: 80 };
const NO_STEPS: ForwardSteps = { ensure: [], remove: [] };
const INSTALL: ExtensionStep = { what: 'install', id: 'example/new:2' };
const UNINSTALL: ExtensionStep = { what: 'uninstall', id: 'example/old' };
const OPEN: ForwardSteps = { ensure: [{ ...FORWARD, hostPort: 8080 }], remove: [] };
const CLOSE = { namespace: 'default', service: 'db', k8sPort: 5432 };
const stepsWith = (extensions: ExtensionStep[], forwards = NO_STEPS): DeedSteps => ({ extensions, forwards });
const OPENED = `open ${JSON.stringify({ ...FORWARD, hostPort: 8080 })}`;
/** Everything succeeds; a test scripts the failures. */
function stage(status = statusWith()) {
  const calls: string[] = [];
  const install = vi.fn(async (id: string) => {
    calls.push(`install ${id}`);
    return { outcome: 'installed' as const, version: '2', leftOut: [] };
  });
  const ensure = vi.fn(async (asked: object) => {
    calls.push(`open ${JSON.stringify(asked)}`);
    return { ...FORWARD, hostPort: 8080, state: 'listening' as const, connections: 0 };
  });
  let now = 0;
  const applies = createApplies({
    controllers: { quiesce: async () => status },
    extensions: {
      install,
      uninstall: async (id) => {
        calls.push(`uninstall ${id}`);
        return 'removed';
      },
    },
    portForwards: {
      ensure,
      remove: async ({ service }) => {
        calls.push(`close ${service}`);
        return true;
      },
    },
    clock: {
      now: () => now,
      sleep: async (ms) => {
        now += ms;
      },
    },
    wasRolledBack: async () => false,
    log: () => undefined,
    onChange: () => undefined,
  });
  return { applies, calls, install, ensure };
}

async function ended({ applies }: ReturnType<typeof stage>) {
  await vi.waitFor(() => expect(applies.report()?.state).not.toBe('running'));
  return applies.report();
}

test('closes and opens port forwards, then changes extensions in their order', async () => {
  const running = stage();
  running.applies
    .reserve(stepsWith([UNINSTALL, INSTALL], { ...OPEN, remove: [CLOSE] }))
    ?.begin(7, { by: { how: 'apply' } });
  expect(running.applies.report()).toMatchObject({ generation: 7, state: 'running' });
  expect(await ended(running)).toEqual({
    generation: 7,
    state: 'done',
    steps: [
      { what: 'forward', name: 'default/db:5432 → (removed)' },
      { what: 'forward', name: 'default/web:80 → 8080' },
      { what: 'uninstall', name: 'example/old' },
      { what: 'install', name: 'example/new:2' },
    ],
  });
  expect(running.calls).toEqual(['close db', OPENED, 'uninstall example/old', 'install example/new:2']);
});

test('does nothing for a plan without such steps', () => {
  const { applies } = stage();
  expect(applies.reserve(stepsWith([]))).toBeUndefined();
  expect(applies.report()).toBeUndefined();
});

test('a failure is reported with its cause, and does not block the rest', async () => {
  const running = stage();
  const cause = new RdError('ERR_IO', 'the disk is full', { advice: 'Free some space.' });
  running.install.mockRejectedValueOnce(new RdError('ERR_EXTENSION_INVALID', 'no extension', { cause }));
  const second: ExtensionStep = { what: 'install', id: 'example/second:1' };
  running.applies.reserve(stepsWith([INSTALL, second], OPEN))?.begin(7, { by: { how: 'apply' } });
  expect(await ended(running)).toMatchObject({
    state: 'failed',
    error: {
      code: 'ERR_EXTENSION_INVALID',
      details: ['install example/new:2: no extension (the disk is full. Free some space.)'],
    },
  });
  expect(running.calls).toEqual([OPENED, 'install example/second:1']);
});

test('waits until extensions have seen the new engine', async () => {
  const running = stage();
  running.install.mockRejectedValueOnce(new RdError('ERR_NOT_READY', 'not ready yet'));
  running.applies.reserve(stepsWith([INSTALL]))?.begin(7, { by: { how: 'apply' } });
  expect(await ended(running)).toMatchObject({ state: 'done' });
  expect(running.install).toHaveBeenCalledTimes(2);
});

test('without a backend, extensions stay unchanged', async () => {
  const running = stage(statusWith({ converged: false, backendState: 'ERROR' }));
  running.applies.reserve(stepsWith([INSTALL], OPEN))?.begin(7, { by: { how: 'apply' } });
  expect(await ended(running)).toMatchObject({
    error: { code: 'ERR_CONVERGE_FAILED', message: expect.stringContaining('state is ERROR') },
  });
  expect(running.calls).toEqual([OPENED]);
});

test('reports a forward that cannot be created', async () => {
  const running = stage();
  running.ensure.mockRejectedValueOnce(new RdError('ERR_PORT_IN_USE', '127.0.0.1:8080 is in use by another program'));
  running.install.mockRejectedValueOnce(new RdError('ERR_EXTENSION_INVALID', 'no extension'));
  running.applies.reserve(stepsWith([INSTALL], OPEN))?.begin(7, { by: { how: 'apply' } });
  expect(await ended(running)).toMatchObject({
    error: {
      code: 'ERR_PORT_IN_USE',
      message: expect.stringContaining('default/web:80'),
      details: [expect.stringContaining('extension'), 'install example/new:2: no extension'],
    },
  });
});

test('stops when the service ends', async () => {
  const running = stage();
  running.install.mockImplementationOnce(async () => {
    running.applies.close();
    throw new RdError('ERR_NOT_READY', 'called off');
  });
  running.applies.reserve(stepsWith([INSTALL], OPEN))?.begin(7, { by: { how: 'apply' } });
  expect(await ended(running)).toMatchObject({ state: 'failed', error: { code: 'ERR_STOPPED' } });
  expect(running.calls).toEqual([OPENED]);
});

test('runs one at a time: reserved, running, and free again at the end or on release', async () => {
  const running = stage();
  const { applies } = running;
  const steps = stepsWith([], OPEN);
  const refused = { code: 'ERR_BACKEND_LOCKED' };
  const first = applies.reserve(steps);
  expect(() => applies.reserve(steps)).toThrow(expect.objectContaining(refused));
  first?.release();
  applies.reserve(steps)?.begin(7, { by: { how: 'apply' } });
  // Also for a plan without such steps: what it was based on is about to change.
  expect(() => applies.reserve(stepsWith([]))).toThrow(expect.objectContaining(refused));
  expect(await ended(running)).toMatchObject({ state: 'done' });
  expect(applies.reserve(steps)).toBeDefined();
});
