import { expect, test } from 'vitest';
import { logLineJson, logLineText, timeOfLine } from '../../cli/views/log-text.ts';
import { style } from '../../cli/views/text.ts';

const PLAIN = style(false);
const TIME = '2026-11-24T15:14:44.481Z';
/** The day and the hour are those of the time zone here. */
const LOCAL = /^2026-11-2[345] \d\d:\d\d:44 /;

const FULL = { message: 'it is full', stack: 'Error: it is full\n    at z (a:1:2)' };

test.each([
  [
    { level: 30, msg: 'step done', step: 'machine start', n: { a: [1] } },
    'INFO  step done step="machine start" n={ a: [1] }',
  ],
  [{ level: 40, msg: 'x', error: FULL }, 'WARN  x error="it is full"'],
  [{ level: 50, msg: 'x', error: FULL }, 'ERROR x error="it is full"\n    at z (a:1:2)'],
  [{ level: 35, msg: 'x' }, '35    x'],
  [{ level: 30, msg: 'a\u001b[31mb\u009bc\nd', 'k\ney': '\u001b[2J' }, 'INFO  ab d k ey="\\u001b[2J"'],
])('a line of the service is a sentence with its values: %o', (entry, expected) => {
  const text = logLineText('json', JSON.stringify({ ...entry, time: TIME, pid: 7 }), PLAIN);
  expect(text).toMatch(LOCAL);
  expect(text.replace(LOCAL, '')).toBe(expected);
});

test.each([
  ['level=info msg="Starting \\"up\\"" a=1', 'INFO  Starting "up" a=1'],
  ['level=warning msg=short', 'WARN  short'],
  ['level=error msg="x \\u001b[2J\\x1b"', 'ERROR x \\u001b[2J\\x1b'],
])('a line of an engine is shortened: %s', (rest, expected) => {
  const text = logLineText('logfmt', `time="${TIME}" ${rest}`, PLAIN);
  expect(text).toMatch(LOCAL);
  expect(text.replace(LOCAL, '')).toBe(expected);
});

test('any other line is shown as it is, without styles and controls', () => {
  expect(logLineText('json', '{"half', PLAIN)).toBe('{"half');
  expect(logLineText('logfmt', 'I1124 15:16:45 a.go:1] b', PLAIN)).toBe('I1124 15:16:45 a.go:1] b');
  expect(logLineText('none', '\u001b[0;32m[  OK  ]\u001b[0m Reached\tx\u0007\u202e', PLAIN)).toBe(
    '[  OK  ] Reached x ',
  );
  expect(logLineText('json', JSON.stringify({ level: 40, time: TIME, msg: 'x' }), style(true))).toContain('\u001b[33m');
});

test('the time of a line is the one that it was written with', () => {
  expect(timeOfLine('json', `{"time":"${TIME}"}`)).toBe(Date.parse(TIME));
  expect(timeOfLine('logfmt', 'time="2026-11-24T16:14:44.481+01:00" level=info')).toBe(Date.parse(TIME));
  for (const line of ['{"time":5}', '{"time":"soon"}', 'null', '{']) expect(timeOfLine('json', line)).toBeUndefined();
  expect(timeOfLine('logfmt', 'panic: time="x"')).toBeUndefined();
});

test('as JSON, every line is a document, and that of a log in JSON is unchanged', () => {
  const line = `{"level":30, "time":"${TIME}"}`;
  expect(logLineJson('json', line)).toBe(line);
  expect(JSON.parse(logLineJson('json', '7'))).toEqual({ line: '7' });
  const engine = `time="${TIME}" level=info msg=a`;
  expect(JSON.parse(logLineJson('logfmt', engine))).toEqual({ time: TIME, line: engine });
  expect(JSON.parse(logLineJson('none', 'a\u001b"'))).toEqual({ line: 'a\u001b"' });
});
