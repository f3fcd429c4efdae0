import { expect, test } from 'vitest';
import { shareObservation } from '../../src/drivers/machines/qemu/share-observation.ts';
import { RdError } from '../../src/errors.ts';

/** An observation that ends on request, or is canceled. */
function scene() {
  const looks: { answer(value: string): void; fail(error: Error): void }[] = [];
  const ask = shareObservation(
    (signal) =>
      new Promise<string>((answer, fail) => {
        signal.addEventListener('abort', () => fail(new RdError('ERR_CANCELLED', 'given up')));
        looks.push({ answer, fail });
      }),
  );
  return { ask, looks };
}

const never = new AbortController().signal;

test('concurrent callers share one observation, and the next call makes a new one', async () => {
  const { ask, looks } = scene();
  const both = [ask(never), ask(never)];
  looks[0]?.answer('running');
  expect(await Promise.all(both)).toEqual(['running', 'running']);
  const next = ask(never);
  looks[1]?.answer('paused');
  expect(await next).toBe('paused');
  expect(looks).toHaveLength(2);
});

test('a caller that cancels does not cancel it for others', async () => {
  const { ask, looks } = scene();
  const abort = new AbortController();
  const first = ask(abort.signal);
  const others = [ask(never), ask(never)];
  abort.abort();
  await expect(first).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  await expect.poll(() => looks.length).toBe(2);
  looks[1]?.answer('running');
  expect(await Promise.all(others)).toEqual(['running', 'running']);
  expect(looks).toHaveLength(2);
});

test('a failure is shared', async () => {
  const { ask, looks } = scene();
  const both = [ask(never), ask(never)];
  looks[0]?.fail(new RdError('ERR_DRIVER_FAILED', 'no answer'));
  for (const each of both) await expect(each).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
});
