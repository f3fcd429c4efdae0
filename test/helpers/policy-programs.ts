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

/** The real code with scripted programs in place of `reg.exe` and `plutil`. */
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
    programs: policyPrograms({ plutil: argv, reg: argv }),
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
      plistAsJson: async (path) => ask('-convert', 'json', '-o', '-', '--', path)?.out ?? '',
      queryRegistry: async (key, deep) => ask('query', key, ...(deep ? ['/s'] : []))?.out,
      exportRegistry: async (key) => Buffer.from(ask('export', key)?.file ?? '', 'base64'),
    },
  };
}
