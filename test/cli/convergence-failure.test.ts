import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withRollbackAdvice } from '../../cli/commands/apply/failure.ts';
import type { Service } from '../../src/client/session/find.ts';
import { RdError } from '../../src/errors.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { places } from '../../src/state/places.ts';
import { statusWith } from '../helpers/plans.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const FAILED = new RdError('ERR_CONVERGE_FAILED', 'The backend did not reach the desired state.');
const BACK = 'To restore the previous state, run: rdctl rollback';

/** What an error becomes with these logs. */
async function told(logs: Record<string, string>, error = FAILED): Promise<RdError> {
  const where = places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '/');
  mkdirSync(where.logs, { recursive: true });
  for (const [name, text] of Object.entries(logs)) writeFileSync(join(where.logs, name), text);
  const fake: Partial<Service['client']> = { status: async () => statusWith(), history: async () => [] };
  const client = fake as Service['client'];
  const outcome: unknown = await withRollbackAdvice(error, { client, status: statusWith() }, where).catch(
    (each) => each,
  );
  if (!(outcome instanceof RdError)) throw new Error('no expected failure');
  return outcome;
}

const record = (level: number, msg: string, rest = {}) =>
  JSON.stringify({ level, time: '2030-01-01T00:00:00.000Z', pid: 1, msg, ...rest });

test('describes the last failure of the service and the command that rolls back', async () => {
  const service = [
    'half a line"}',
    record(40, 'step failed', { step: 'engine start', error: 'an older one' }),
    record(40, 'step failed', { step: 'engine start', error: 'the disk is full' }),
    record(30, 'request done'),
    '',
  ].join('\n');
  const { code, details, advice } = await told({ 'service.log': service });
  expect({ code, advice }).toEqual({ code: 'ERR_CONVERGE_FAILED', advice: BACK });
  expect(details).toHaveLength(1);
  expect(details[0]).toMatch(/\/service\.log: 2030-01-01T00:00:00\.000Z: step failed: engine start: the disk is full$/);
});

test('shows the log of the engine before that of the service', async () => {
  const { details } = await told({
    'dockerd.log': 'starting\nfailed to \u001b[31mload\n\n',
    'service.log': record(40, 'step failed'),
  });
  expect(details).toHaveLength(1);
  expect(details[0]).toMatch(/\/dockerd\.log: failed to {2}?\S*load$/);
});

test('shows the reason alone when no log has an error', async () => {
  expect((await told({})).details).toEqual([]);
  expect(await told({ 'service.log': record(30, 'listening') })).toMatchObject({ details: [], advice: BACK });
});

test.each<[string, RdError | undefined, string]>([
  ['that is taken', undefined, BACK],
  [
    'that is refused',
    new RdError('ERR_SETTINGS_INVALID', 'the requested settings are not valid', { details: ['Cannot decrease it'] }),
    'The previous state cannot be restored (Cannot decrease it). Fix the profile and apply it again.',
  ],
  ['of which nothing can be known', new RdError('ERR_CONNECTION', 'the service is gone'), BACK],
])('rolling back %s', async (_what, refusal, advice) => {
  const where = places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '/');
  const status = statusWith();
  const entry: HistoryEntry = {
    ...{ generation: 2, at: '', by: { how: 'apply' } },
    changes: [{ path: 'virtualMachine.memoryInGB', before: 2, after: 4 }],
  };
  const asked: unknown[] = [];
  const client = {
    status: async () => status,
    history: async () => [entry],
    async plan(request: unknown) {
      asked.push(request);
      if (refusal) throw refusal;
      return {};
    },
  } as Partial<Service['client']> as Service['client'];
  const outcome: unknown = await withRollbackAdvice(FAILED, { client, status }, where).catch((each) => each);
  expect(outcome).toMatchObject({ code: 'ERR_CONVERGE_FAILED', advice });
  expect(asked).toEqual([expect.objectContaining({ settings: { version: 19, virtualMachine: { memoryInGB: 2 } } })]);
});

test('passes other errors on unchanged', async () => {
  const late = new RdError('ERR_DEADLINE', 'late');
  expect(await told({ 'service.log': record(40, 'step failed') }, late)).toBe(late);
});
