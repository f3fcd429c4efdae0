import { appendFileSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { LineSelection } from '../../src/os/log-lines.ts';
import { type FollowOptions, readLog } from '../../src/os/log-reader.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { createVirtualClock } from '../reconcile/virtual-clock.ts';

function scene() {
  const directory = temporaryDirectory();
  const files = ['log', 'log.1', 'log.2'].map((name) => join(directory, name));
  const [log = '', older = '', oldest = ''] = files;
  const all = async (selection: LineSelection = {}) => {
    const lines: string[] = [];
    for await (const line of (await readLog(files, selection)) ?? []) lines.push(line);
    return lines;
  };
  return { directory, files, log, older, oldest, all };
}

/** Follows a log whose changes are announced when the test says so, or not at all. */
async function follow({ files }: Pick<ReturnType<typeof scene>, 'files'>, { announced = true } = {}) {
  const clock = createVirtualClock();
  const end = new AbortController();
  let stir = () => {};
  let watching = 0;
  const watchFile: NonNullable<FollowOptions['watchFile']> = (_file, changed) => {
    if (!announced) return undefined;
    watching += 1;
    stir = changed;
    return () => {
      watching -= 1;
    };
  };
  const seen: string[] = [];
  const read = await readLog(files, { last: 1 }, { signal: end.signal, clock, watchFile });
  const done = (async () => {
    for await (const line of read ?? []) seen.push(line);
  })();
  /** The next lines, once they are there; a look that finds none would wait for the limit of the test. */
  const next = async (...lines: string[]) => {
    await expect.poll(() => seen.length).toBeGreaterThanOrEqual(lines.length);
    expect(seen.splice(0)).toEqual(lines);
  };
  return {
    clock,
    next,
    asleep: () => expect.poll(() => clock.sleepers()).toBe(1),
    stir: () => stir(),
    watching: () => watching,
    async stop() {
      end.abort();
      await done;
    },
  };
}

test('the last lines are found over rotated files, in order, and with the end of a line that is being written', async () => {
  const { log, older, oldest, all } = scene();
  expect(await all()).toEqual([]);
  writeFileSync(oldest, 'a\nb\n');
  writeFileSync(older, 'c\n');
  expect(await all()).toEqual(['a', 'b', 'c']);
  writeFileSync(log, 'd\ne');
  expect(await all()).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(await all({ last: 1 })).toEqual(['e']);
  expect(await all({ last: 4 })).toEqual(['b', 'c', 'd', 'e']);
  const timeOf = (line: string) => line.charCodeAt(0);
  expect(await all({ since: { time: timeOf('c'), timeOf } })).toEqual(['c', 'd', 'e']);
});

test('a link in place of a log is not followed', async () => {
  const { log, all } = scene();
  symlinkSync('/etc/passwd', log);
  await expect(all()).rejects.toMatchObject({ code: 'ERR_IO', message: expect.stringContaining(log) });
});

test('new lines, a rotation and a truncation are followed, without a line lost or shown twice', async () => {
  const here = scene();
  writeFileSync(here.log, 'a\nb\n');
  const { next, stir, asleep, watching, stop } = await follow(here);
  await next('b');
  await asleep();
  appendFileSync(here.log, 'c\nhalf');
  stir();
  await next('c');
  await asleep();
  appendFileSync(here.log, ' and half\nd\n');
  renameSync(here.log, here.older);
  appendFileSync(here.older, 'the last of the old one\n');
  writeFileSync(here.log, 'first\n');
  stir();
  await next('half and half', 'd', 'the last of the old one', 'first');
  await asleep();
  truncateSync(here.log);
  stir();
  await asleep();
  appendFileSync(here.log, 'x\n');
  stir();
  await next('x');
  expect(watching()).toBe(1);
  await stop();
  expect(watching()).toBe(0);
});

test('between the rename and the new file nothing is lost', async () => {
  const here = scene();
  writeFileSync(here.log, 'a\n');
  const { next, stir, asleep, stop } = await follow(here);
  await next('a');
  await asleep();
  renameSync(here.log, here.older);
  stir();
  appendFileSync(here.older, 'b\n');
  stir();
  await next('b');
  writeFileSync(here.log, 'c\n');
  stir();
  await next('c');
  await stop();
});

test.each([
  { announced: true, ms: 5_000 },
  { announced: false, ms: 500 },
])(
  'a change that is not announced is seen after $ms ms (changes are announced: $announced)',
  async ({ announced, ms }) => {
    const here = scene();
    writeFileSync(here.log, 'a\n');
    const { clock, next, asleep, stop } = await follow(here, { announced });
    await next('a');
    await asleep();
    appendFileSync(here.log, 'b\n');
    await clock.advance(ms - 1);
    await next();
    await clock.advance(1);
    await next('b');
    await stop();
  },
);

test('a log that is not there is not followed', async () => {
  const { files, older } = scene();
  writeFileSync(older, 'a\n');
  const clock = createVirtualClock();
  expect(await readLog(files, {}, { signal: new AbortController().signal, clock })).toBeUndefined();
});
