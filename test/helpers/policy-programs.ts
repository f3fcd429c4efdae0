import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PolicyPrograms, policyPrograms } from '../../profiles/policies/places.ts';
import { temporaryDirectory } from './temp-home.ts';

/** What a stand-in does for a command line: its arguments, joined by spaces; unknown ones fail with status 1. */
interface Answer {
  out?: string;
  err?: string;
  status?: number;
  /** Written to the path that follows the key of an export. */
  file?: string;
}

export interface StandIn {
  programs: PolicyPrograms;
  /** The received command lines, each with its arguments. */
  calls(): string[][];
}

const SCRIPT = `
const { appendFileSync, readFileSync, writeFileSync } = require('node:fs');
const [answers, log, ...args] = process.argv.slice(2);
appendFileSync(log, JSON.stringify(args) + '\\n');
const table = JSON.parse(readFileSync(answers, 'utf8'));
const key = args[0] === 'export' ? args.slice(0, 2).join(' ') : args.join(' ');
const answer = table[key] ?? { err: 'FEHLER: nicht gefunden', status: 1 };
if (answer.file !== undefined) writeFileSync(args[2], Buffer.from(answer.file, 'base64'));
if (answer.out) process.stdout.write(answer.out);
if (answer.err) process.stderr.write(answer.err);
process.exitCode = answer.status ?? 0;
`;

/** The real code with a script in place of `reg.exe`. */
export function standIn(answers: Record<string, Answer>): StandIn {
  const directory = temporaryDirectory();
  const [script, table, log] = ['stand-in.cjs', 'answers.json', 'calls.jsonl'].map((name) => join(directory, name));
  if (!script || !table || !log) throw new Error('three names');
  writeFileSync(script, SCRIPT);
  chmodSync(script, 0o755);
  writeFileSync(table, JSON.stringify(answers));
  writeFileSync(log, '');
  const argv = [process.execPath, script, table, log];
  return {
    programs: policyPrograms(argv),
    calls: () =>
      readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
  };
}

/** The same responses without starting a program, for long tables; a failure means a missing key. */
export function answering(answers: Record<string, Answer>): StandIn {
  const calls: string[][] = [];
  const ask = (...args: string[]): Answer | undefined => {
    calls.push(args);
    return answers[args.join(' ')];
  };
  return {
    calls: () => calls,
    programs: {
      queryRegistry: async (key) => ask('query', key)?.out,
      exportRegistry: async (key) => Buffer.from(ask('export', key)?.file ?? '', 'base64'),
    },
  };
}

/** What `reg.exe` answers for a key that holds what `reg query KEY /s` would show as `shown`. */
export function holding(key: string, shown: string): Record<string, Answer> {
  return { [`query ${key}`]: { out: `${key}\r\n` }, [`export ${key}`]: { file: exportOf(shown).toString('base64') } };
}

/** The same as a file of `reg export`. */
function exportOf(shown: string): Buffer {
  const lines = shown.split(/\r?\n/).flatMap((line) => {
    if (line.startsWith('HKEY_')) return ['', `[${line}]`];
    const [, name = '', type = '', text = ''] = /^ {4}(.*?) {4}(REG_\w+)(?: {4}(.*))?$/.exec(line) ?? [];
    if (type === '') return [];
    return [`${name === '(Standard)' ? '@' : quoted(name)}=${dataOf(type, text)}`];
  });
  return Buffer.from(`\ufeff${['Windows Registry Editor Version 5.00', ...lines, ''].join('\r\n')}`, 'utf16le');
}

function dataOf(type: string, text: string): string {
  const hex = (data: Buffer) => data.toString('hex').replace(/..(?!$)/g, '$&,');
  const wide = (all: string) => hex(Buffer.from(all, 'utf16le'));
  const number = Buffer.alloc(8);
  if (text.startsWith('0x')) number.writeUInt32LE(Number(text));
  switch (type) {
    case 'REG_SZ':
      return quoted(text);
    case 'REG_DWORD':
      return `dword:${text.slice(2).padStart(8, '0')}`;
    case 'REG_DWORD_LITTLE_ENDIAN':
      return `hex(4):${hex(number.subarray(0, 4))}`;
    case 'REG_MULTI_SZ':
      return `hex(7):${wide(text === '' ? '\0' : `${text.replaceAll('\\0', '\0')}\0\0`)}`;
    case 'REG_EXPAND_SZ':
      return `hex(2):${wide(`${text}\0`)}`;
    case 'REG_QWORD':
      return `hex(b):${hex(number)}`;
    case 'REG_BINARY':
      return `hex:${hex(Buffer.from(text, 'hex'))}`;
    default:
      throw new Error(`no form for ${type}`);
  }
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}
