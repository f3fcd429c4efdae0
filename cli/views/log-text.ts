import { stripVTControlCharacters } from 'node:util';
import type { LogPlace } from '../../src/drivers/log-places.ts';
import { defined, isObject, type JsonObject, type JsonValue, parseJson } from '../../src/json.ts';
import { timeText } from './history-text.ts';
import { plainText, type Style, valueText } from './text.ts';

type Times = LogPlace['times'];

/** Names of pino's levels. */
const LEVELS: Readonly<Record<number, string>> = { 20: 'DEBUG', 30: 'INFO', 40: 'WARN', 50: 'ERROR', 60: 'FATAL' };
const ERROR = 50;
/** Matches lines of dockerd, containerd and k3s: `time="…" level=info msg="…" key=value`. */
const LOGFMT = /^time="([^"]*)" level=(\w+) msg=(?:"((?:[^"\\]|\\.)*)"|(\S*))(.*)$/;
const LOGFMT_TIME = /^time="([^"]*)"/;

/** Returns the time of a line in milliseconds since 1970; undefined for a line without one. */
export function timeOfLine(times: Times, line: string): number | undefined {
  const time = Date.parse(writtenTime(times, line) ?? '');
  return Number.isNaN(time) ? undefined : time;
}

function writtenTime(times: Times, line: string): string | undefined {
  if (times === 'logfmt') return LOGFMT_TIME.exec(line)?.[1];
  const entry = times === 'json' ? parseJson(line) : undefined;
  return isObject(entry) && typeof entry.time === 'string' ? entry.time : undefined;
}

/** Formats a line as JSON. One of a log in JSON is unchanged; any other is the member `line`, beside its `time`. */
export function logLineJson(times: Times, line: string): string {
  if (times === 'json' && isObject(parseJson(line))) return line;
  const time = writtenTime(times, line);
  return JSON.stringify({ ...defined({ time }), line });
}

/** Formats a line for people, with its time in the time zone of this computer. Nothing in it moves the cursor. */
export function logLineText(times: Times, line: string, paint: Style): string {
  const entry = times === 'json' ? parseJson(line) : undefined;
  if (isObject(entry)) return entryText(entry, paint);
  const [, time, level = '', quoted, bare = '', rest = ''] = (times === 'logfmt' && LOGFMT.exec(line)) || [];
  if (time === undefined) return printableText(line);
  const message = quoted === undefined ? bare : unquote(quoted);
  return `${timeText(time)} ${levelText(level, paint)} ${printableText(`${message}${rest}`)}`;
}

function entryText({ level, time, pid: _, msg, error, ...values }: JsonObject, paint: Style): string {
  const failure = isObject(error) && typeof error.message === 'string' ? error : undefined;
  const all = error === undefined ? values : { ...values, error: failure?.message ?? error };
  const words = Object.entries<JsonValue | undefined>(all).map(
    ([key, value]) => ` ${plainText(key)}=${valueText(value)}`,
  );
  const name = LEVELS[Number(level)] ?? String(level ?? '');
  const head = `${timeText(String(time ?? ''))} ${levelText(name, paint)} ${printableText(String(msg ?? ''))}${words.join('')}`;
  const stack = Number(level) >= ERROR && typeof failure?.stack === 'string' ? failure.stack.split('\n').slice(1) : [];
  return [head, ...stack.map((frame) => `    ${plainText(frame.trim())}`)].join('\n');
}

function levelText(level: string, paint: Style): string {
  const name = plainText(level).toUpperCase().replace('WARNING', 'WARN');
  const padded = name.padEnd('ERROR'.length);
  if (name === 'WARN') return paint.warn(padded);
  return name === 'ERROR' || name === 'FATAL' ? paint.bad(padded) : padded;
}

function unquote(text: string): string {
  const value = parseJson(`"${text}"`);
  return typeof value === 'string' ? value : text;
}

/** Removes styles and control characters: programs in a machine may write any. */
function printableText(text: string): string {
  return plainText(stripVTControlCharacters(text));
}
