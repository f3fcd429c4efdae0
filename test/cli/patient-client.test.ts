import { expect, test, vi } from 'vitest';
import { patientClient } from '../../cli/views/service-activity.ts';
import { createClient } from '../../src/client/client.ts';
import type { Client } from '../../src/client/contract.ts';
import { steadyClock } from '../../src/os/clock.ts';
import type { PlanRequest } from '../../src/plan/change.ts';
import { startApi } from '../helpers/api.ts';
import { fakeIo, type Stage } from '../helpers/cli.ts';

/** A client of a service whose plan is ready when the test says so. */
function stage(options: Stage) {
  const { client } = startApi();
  const io = fakeIo(options);
  const asked: Parameters<Client['planWithLive']>[1][] = [];
  let answer: () => void = () => expect.unreachable('no plan was asked for');
  const slow: Client = {
    ...client,
    watch: async (onStatus) => onStatus(await client.status()),
    async planWithLive(request, call) {
      asked.push(call);
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return client.planWithLive(request);
    },
  };
  return { io, asked, client: patientClient(slow, io, () => 7_000), answer: () => answer() };
}

const NOTHING: PlanRequest = { settings: {}, state: 'unmanaged', prune: [] };

test('shows on a terminal what it waits for, and clears the line', async () => {
  vi.spyOn(steadyClock, 'sleep').mockImplementationOnce(async () => undefined);
  const { io, asked, client, answer } = stage({ progress: true });
  const drawn = new Promise<string>((resolve) => {
    const { err } = io;
    io.err = (text) => {
      err(text);
      resolve(text);
    };
  });
  const plan = client.planWithLive(NOTHING);
  expect(await drawn).toBe('Waiting for the current state: querying the driver …');
  answer();
  expect((await plan).plan.kind).toBe('Plan');
  expect(io.text.err.endsWith('\r\u001b[2K')).toBe(true);
  expect(asked).toMatchObject([{ waitMs: 7_000, signal: io.signal }]);
  // Longer than the service may take.
  expect(asked[0]?.timeoutMs).toBeGreaterThan(7_000);
});

test('shows no line for a quick plan or without a terminal', async () => {
  for (const progress of [true, false]) {
    const { io, client, answer } = stage({ progress });
    const plan = client.planWithLive(NOTHING);
    answer();
    await plan;
    expect(io.text.err).toBe('');
  }
});

test('the wait is part of the request', async () => {
  const paths: string[] = [];
  const connection = { host: 'h', port: 1, user: 'u', password: 'p', foreign: false, reached: { by: 'word' } } as const;
  const client = createClient(connection, async (_connection, { path }) => {
    paths.push(path);
    throw new Error('the test needs no answer');
  });
  await expect(patientClient(client, fakeIo(), () => 1_234.5).planWithLive(NOTHING)).rejects.toThrow();
  await expect(client.planWithLive(NOTHING)).rejects.toThrow();
  expect(paths).toEqual(['/v2/plan?waitMs=1235&live=true', '/v2/plan?live=true']);
});
