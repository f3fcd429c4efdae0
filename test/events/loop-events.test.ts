import { describe, expect, test } from 'vitest';
import { applyEvents } from '../../src/events/apply-events.ts';
import { type LoopMemory, loopEvents } from '../../src/events/loop-events.ts';
import type { Condition, Phase } from '../../src/reconcile/contract.ts';
import type { ApplyWork, StatusDocument } from '../../src/reconcile/status-document.ts';
import { statusWith } from '../helpers/plans.ts';

const AT = '2026-11-24T12:00:00.000Z';

function condition(type: Condition['type'], rest: Partial<Condition> = {}): Condition {
  const good = { status: 'True', reason: 'Running', concern: 'none', message: 'It runs.' } as const;
  return { type, ...good, observedGeneration: 3, lastTransitionTime: AT, ...rest };
}
const UP = [condition('EngineReady'), condition('Converged', { reason: 'UpToDate' })];
const OFF = { status: 'False', reason: 'Starting', concern: 'patience', message: 'It is off.' } as const;
const WORKING = condition('Converged', { ...OFF, reason: 'Working' });
const started: Phase = { name: 'engine start', startedAt: AT };
const done: Phase = { ...started, ms: 12, outcome: 'done' };

/** What a sequence of reports makes of a start; each as `type` and the essential fact. */
function story(...reports: Partial<StatusDocument>[]): string[] {
  const first = statusWith({ generation: 2, observedGeneration: 2, converged: false, conditions: [], phases: [] });
  let memory: LoopMemory = { status: first };
  return reports.flatMap((report) => {
    const { events, memory: next } = loopEvents(memory, statusWith(report));
    memory = next;
    return events.map((event) => {
      if (event.type === 'phase')
        return `${event.phase.name} ${event.phase.outcome ?? event.phase.waitingFor ?? 'begins'}`;
      if (event.type === 'condition') return `${event.condition.type} ${event.condition.reason}`;
      return event.type === 'drift' ? `drift: ${event.drift.message}` : event.type;
    });
  });
}

describe('the loop', () => {
  test('a change: its steps and conditions, each once', () => {
    const off = { converged: false, observedGeneration: 2, conditions: [condition('EngineReady', OFF), WORKING] };
    expect(
      story(
        { ...off, phases: [started] },
        { ...off, phases: [started] },
        { conditions: UP, phases: [done] },
        { conditions: UP, phases: [done] },
      ),
    ).toEqual([
      'engine start begins',
      'EngineReady Starting',
      'Converged Working',
      'engine start done',
      'EngineReady Running',
      'Converged UpToDate',
    ]);
  });

  test('a step says what it waits for, once each time it changes', () => {
    const waits = (waitingFor: string) => ({ conditions: UP, phases: [{ ...started, waitingFor }] });
    const reports = [{ conditions: UP, phases: [started] }, waits('no node'), waits('no node'), waits('no network')];
    expect(story(...reports, { conditions: UP, phases: [done] }).filter((event) => event.startsWith('engine'))).toEqual(
      ['engine start begins', 'engine start no node', 'engine start no network', 'engine start done'],
    );
  });

  test('a part that stops by itself is drift', () => {
    const off = { converged: false, conditions: [condition('EngineReady', OFF), WORKING] };
    expect(
      story({ conditions: UP }, off, { ...off, phases: [started] }, { conditions: UP, phases: [done] }).slice(2),
    ).toEqual([
      'drift: It is off.',
      'EngineReady Starting',
      'Converged Working',
      'engine start begins',
      'engine start done',
      'EngineReady Running',
      'Converged UpToDate',
    ]);
  });

  test('a step without a part that is down is drift as well', () => {
    const busy = { converged: false, conditions: [UP[0] as Condition, WORKING], phases: [started] };
    expect(story({ conditions: UP }, busy).slice(2)).toEqual([
      'drift: The service had to act: engine start.',
      'engine start begins',
      'Converged Working',
    ]);
  });

  test('neither a stale observation, nor a change, nor a hold is drift', () => {
    const stale = { converged: false, conditions: [UP[0] as Condition, WORKING] };
    expect(story({ conditions: UP }, stale, { conditions: UP }).slice(2)).toEqual([
      'Converged Working',
      'Converged UpToDate',
    ]);
    const next = { generation: 4, converged: false, conditions: [condition('EngineReady', OFF), WORKING] };
    expect(story({ conditions: UP }, next).slice(2)).toEqual(['EngineReady Starting', 'Converged Working']);
    const held = { converged: false, conditions: [condition('Converged', { ...OFF, reason: 'Held' })] };
    expect(story({ conditions: UP }, held, { conditions: UP }).slice(2)).toEqual([
      'Converged Held',
      'EngineReady Running',
      'Converged UpToDate',
    ]);
  });

  test('the message of a failure is reported with every attempt, that of work in progress once', () => {
    const attention = { status: 'False', reason: 'StepFailed', concern: 'attention' } as const;
    const failing = (message: string) => [condition('EngineReady', { ...attention, message })];
    expect(
      story(
        { converged: false, observedGeneration: 2, conditions: failing('one attempt') },
        { converged: false, observedGeneration: 2, conditions: failing('two attempts') },
        { converged: false, backendState: 'ERROR', conditions: failing('two attempts') },
      ),
    ).toEqual(['EngineReady StepFailed', 'EngineReady StepFailed']);
  });
});

test('an apply begins, takes its steps and ends', () => {
  const begun: ApplyWork = { generation: 4, state: 'running', steps: [] };
  const step = { what: 'install', name: 'a/b' } as const;
  const failed: ApplyWork = {
    ...{ generation: 4, state: 'failed', steps: [step] },
    error: { code: 'ERR_IO', message: 'no', details: [] },
  };
  expect(applyEvents(undefined, undefined)).toEqual([]);
  expect(applyEvents(undefined, begun)).toEqual([{ type: 'apply', apply: { generation: 4, state: 'running' } }]);
  expect(applyEvents(begun, { ...begun, steps: [step] })).toEqual([
    { type: 'apply', apply: { generation: 4, state: 'running', step } },
  ]);
  expect(applyEvents({ ...begun, steps: [step] }, failed)).toEqual([
    { type: 'apply', apply: { generation: 4, state: 'failed', error: failed.error } },
  ]);
  expect(applyEvents(failed, failed)).toEqual([]);
  expect(applyEvents(failed, { ...begun, generation: 5 })).toEqual([
    { type: 'apply', apply: { generation: 5, state: 'running' } },
  ]);
});
