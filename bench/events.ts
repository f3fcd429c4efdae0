import { createClient } from '../src/client/client.ts';
import { discover } from '../src/client/discovery.ts';
import { compare, type Result, result } from './measure.ts';
import { startService } from './service.ts';

/** From sending a change until its event is at a reader, against the time until the change is answered. */
export async function events(profile: string, rounds: number): Promise<Result[]> {
  await using service = await startService(profile);
  const client = createClient(await discover({}, service.env, 'linux'));
  const leaving = new AbortController();
  let arrived = (_at: number) => {};
  let ready = () => {};
  const connected = new Promise<void>((done) => {
    ready = done;
  });
  const reading = client.events?.({
    kinds: ['change'],
    onMessage: () => arrived(performance.now()),
    onPosition: () => ready(),
    signal: leaving.signal,
  });
  const over = reading?.catch(() => undefined);
  await connected;
  const subjects: number[] = [];
  const references: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const event = new Promise<number>((done) => {
      arrived = done;
    });
    const begun = performance.now();
    await client.putSettings({ version: 19, images: { namespace: `round-${round}` } });
    references.push(performance.now() - begun);
    subjects.push((await event) - begun);
  }
  leaving.abort();
  await over;
  return [
    result({
      name: 'events: a change at a reader',
      compared: 'time from a write to its event / to its answer',
      ...compare(subjects, references),
      aim: { sign: '<=', value: 1.2 },
      unit: 'ms',
      rounds,
    }),
  ];
}
