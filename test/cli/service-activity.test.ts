import { expect, test } from 'vitest';
import { serviceLine, workText } from '../../cli/views/service-activity.ts';
import type { Client } from '../../src/client/client.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { createVirtualClock } from '../reconcile/virtual-clock.ts';

const WAITING = {
  phases: [{ name: 'cluster start', startedAt: '2026-01-01T00:00:00Z' }],
  conditions: [
    {
      type: 'ClusterReady',
      concern: 'patience',
      reason: 'Starting',
      message: 'The cluster is off and will be started.',
    },
    { type: 'Converged', concern: 'patience', reason: 'Working', message: 'Still converging.' },
  ],
} as unknown as StatusDocument;

/** A command beside a service that reports what the test says. */
function beside(isTerminal: boolean, prints?: true) {
  const clock = createVirtualClock();
  const printed: string[] = [];
  let report = (_status: StatusDocument) => {};
  const client = {
    foreign: false,
    watch: (draw: (status: StatusDocument) => void, signal: AbortSignal) => {
      report = draw;
      draw(WAITING);
      return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  } as unknown as Client;
  const io = { err: (text: string) => printed.push(text), progress: isTerminal } as never;
  const line = { text: workText, afterMs: 1_000, ...(prints ? { prints } : {}) };
  const stop = serviceLine(client, io, line, clock);
  return { clock, printed, stop, report: (status: Partial<StatusDocument>) => report({ ...WAITING, ...status }) };
}

test('a terminal shows after a second what the service works on, and is cleared', async () => {
  const { clock, printed, stop } = beside(true);
  await clock.advance(999);
  expect(printed).toEqual([]);
  await clock.advance(1);
  expect(printed).toEqual(['cluster start … The cluster is off and will be started.']);
  await stop();
  expect(printed.at(-1)).toBe('\r\u001b[2K');
});

test('elsewhere a long wait is printed line by line, and a short one not at all', async () => {
  const { clock, printed, stop, report } = beside(false, true);
  await clock.advance(14_999);
  expect(printed).toEqual([]);
  await clock.advance(1);
  report({ maintenance: 'Too soon.' });
  await clock.advance(15_000);
  report({});
  report({ maintenance: 'Resetting the cluster: copying 1 GiB.' });
  expect(printed).toEqual([
    '  cluster start … The cluster is off and will be started.\n',
    '  Resetting the cluster: copying 1 GiB.\n',
  ]);
  await stop();
  expect(printed).toHaveLength(2);
});

test('elsewhere nothing is printed for a command that only draws', async () => {
  const { clock, printed, stop } = beside(false);
  await clock.advance(60_000);
  await stop();
  expect(printed).toEqual([]);
});
