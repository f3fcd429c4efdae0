import { expect, test } from 'vitest';
import { progress } from '../../cli/views/progress.ts';
import { serviceLine } from '../../cli/views/service-activity.ts';
import { style } from '../../cli/views/text.ts';
import { viewFor } from '../../cli/views/view.ts';
import { workText } from '../../cli/views/work-text.ts';
import type { Condition, Phase } from '../../src/reconcile/contract.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { fakeIo } from '../helpers/cli.ts';
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
    watch(draw: (status: StatusDocument) => void, signal: AbortSignal) {
      report = draw;
      draw(WAITING);
      return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  };
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
  report({ maintenance: 'Resetting the cluster: copying 1 GiB.' });
  await clock.advance(14_999);
  expect(printed).toHaveLength(1);
  await clock.advance(60_000);
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

test('a step says what it waits for, a pause says why, and a hold comes first', () => {
  const doing = (status: Partial<StatusDocument>) => workText({ ...WAITING, ...status });
  const [phase] = WAITING.phases;
  expect(doing({ phases: [{ ...phase, waitingFor: 'no node has joined' } as Phase] })).toBe(
    'cluster start … no node has joined',
  );
  const failed = { type: 'EngineReady', reason: 'StepFailed', concern: 'attention', message: 'It failed. Retrying.' };
  expect(doing({ phases: [], conditions: [...WAITING.conditions, failed as Condition] })).toBe('It failed. Retrying.');
  const held = { type: 'Converged', reason: 'Held', concern: 'patience', message: 'The backend waits.' } as Condition;
  expect(doing({ conditions: [...WAITING.conditions, held] })).toBe('The backend waits.');
  expect(doing({ phases: [], conditions: [] })).toBeUndefined();
});

test('an apply prints elsewhere what it waits for, 15 seconds after its last line', async () => {
  const clock = createVirtualClock();
  const io = fakeIo();
  const steps = progress(io, style(false), clock);
  steps.show(WAITING);
  await clock.advance(14_000);
  const done = { name: 'engine start', startedAt: '2025-12-31T23:59:59Z', ms: 900, outcome: 'done' } as const;
  steps.show({ ...WAITING, phases: [done, ...WAITING.phases] });
  await clock.advance(14_999);
  expect(io.text.err).toBe('  engine start: done (900 ms)\n');
  await clock.advance(1);
  expect(io.text.err).toBe(
    '  engine start: done (900 ms)\n  cluster start … The cluster is off and will be started.\n',
  );
  steps.end();
  expect(clock.sleepers()).toBe(0);
});

test('a line that is drawn is cleared before anything else is written', async () => {
  const io = fakeIo({ progress: true });
  const view = viewFor('text', io);
  view.event({ type: 'progress', status: WAITING });
  view.event({ type: 'returning', to: 3 });
  expect(io.text.err).toContain('…');
  expect(io.text.err.endsWith('\r\u001b[2KThe change failed; going back to generation 3.\n')).toBe(true);
  view.endEvents();
});
