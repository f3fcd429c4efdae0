import { expect, test } from 'vitest';
import type { Workload } from '../../src/drivers/driver.ts';
import { EVENTS_HELLO, FULL_LOOK_MS, followedWorkload } from '../../src/drivers/engines/followed-workload.ts';

const NEVER = new AbortController().signal;
const HOUR = 3_600_000;
const CHECK_MS = 5_000;
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
const EVENT = '2\r\n{}\r\n';

/** A workload that counts how often it is read, followed on a clock that the test moves. */
function followed() {
  let time = 0;
  let reads = 0;
  const answer: { next: Workload; meanwhile?: (() => void) | undefined } = {
    next: { containers: 3, runningContainers: 3, images: 3, running: [] },
  };
  const workload = followedWorkload(
    async () => {
      reads += 1;
      answer.meanwhile?.();
      return answer.next;
    },
    { now: () => time },
  );
  const connect = (...said: string[]) => {
    const listener = workload.follow();
    for (const text of said) listener.heard(Buffer.from(text));
    return { say: (text: string) => listener.heard(Buffer.from(text)), end: () => listener.ended() };
  };
  /** As the loop does for so long; returns how often the workload was read. */
  const checks = async (ms: number) => {
    const before = reads;
    for (const end = time + ms; time < end; time += CHECK_MS) await workload.look('routine', NEVER);
    return reads - before;
  };
  return { answer, connect, checks, look: workload.look, reads: () => reads };
}

test('an idle hour reads the workload four times', async () => {
  const { connect, checks } = followed();
  connect(HEAD);
  expect(await checks(HOUR)).toBe(HOUR / FULL_LOOK_MS);
  expect(HOUR / FULL_LOOK_MS).toBe(4);
});

test('every event is followed by one read, whatever its bytes arrive with', async () => {
  const { connect, checks } = followed();
  const { say } = connect(HEAD.slice(0, 20), HEAD.slice(20));
  expect(await checks(CHECK_MS * 3)).toBe(1);
  say(EVENT);
  expect(await checks(CHECK_MS * 3)).toBe(1);
  for (const byte of EVENT) say(byte);
  expect(await checks(CHECK_MS * 3)).toBe(1);
  connect(HEAD + EVENT);
  expect(await checks(CHECK_MS * 3)).toBe(1);
});

test('an event during a read leads to another', async () => {
  const { answer, connect, checks } = followed();
  const { say } = connect(HEAD);
  answer.meanwhile = () => {
    answer.meanwhile = undefined;
    say(EVENT);
  };
  expect(await checks(CHECK_MS * 4)).toBe(2);
});

test('without a connection that reports events every look reads', async () => {
  const { connect, checks } = followed();
  expect(await checks(CHECK_MS * 3)).toBe(3);
  const refused = connect('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}', EVENT);
  expect(await checks(CHECK_MS * 3)).toBe(3);
  refused.end();
  connect('HTTP/1.1 200 OK\r\n');
  expect(await checks(CHECK_MS * 3)).toBe(3);
  const { end } = connect(HEAD);
  expect(await checks(CHECK_MS * 3)).toBe(1);
  end();
  expect(await checks(CHECK_MS * 3)).toBe(3);
});

test('what was read before a connection ended is not taken for current after the next one opened', async () => {
  const { connect, checks } = followed();
  const first = connect(HEAD);
  expect(await checks(CHECK_MS * 3)).toBe(1);
  const second = connect(HEAD);
  expect(await checks(CHECK_MS * 3)).toBe(1);
  // The end of the earlier one comes late.
  first.end();
  expect(await checks(CHECK_MS * 3)).toBe(0);
  second.say(EVENT);
  expect(await checks(CHECK_MS * 3)).toBe(1);
});

test('a full look always reads, and a partial answer is read again', async () => {
  const { answer, connect, checks, look, reads } = followed();
  connect(HEAD);
  await checks(CHECK_MS);
  answer.next = { containers: 4, runningContainers: 4, images: 3, running: [{ name: 'new' }] };
  expect(await look('full', NEVER)).toEqual(answer.next);
  expect(await look('routine', NEVER)).toEqual(answer.next);
  expect(reads()).toBe(2);
  answer.next = { containers: 4, runningContainers: 4, running: [] };
  await look('full', NEVER);
  expect(await checks(CHECK_MS * 3)).toBe(3);
});

test('the request is one that dockerd parses, and health checks are no events', () => {
  const [line, host, ...end] = EVENTS_HELLO.split('\r\n');
  const query = new URL(line?.split(' ')[1] ?? '', 'http://localhost').searchParams.get('filters') ?? '';
  const { type, event } = JSON.parse(query);
  expect([host, ...end]).toEqual(['Host: localhost', '', '']);
  expect(type).toEqual(['container', 'image']);
  expect(event.filter((name: string) => /exec|health/.test(name))).toEqual([]);
});
