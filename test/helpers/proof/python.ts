import { resolve } from 'node:path';
import { ranProgram } from './program.ts';

/** A value as Python's plistlib read it, preceded by its type. */
export type PlistValue =
  | ['boolean', boolean]
  | ['integer' | 'real' | 'string' | 'data' | 'date', string]
  | ['array', PlistValue[]]
  | ['dict', [string, PlistValue][]];

export interface XmlElement {
  tag: string;
  attributes: Record<string, string>;
  text: string;
  children: XmlElement[];
}

/** The contents of one file, or why it was rejected. */
export type Read<Value> = { value: Value } | { error: string };

/** Property lists, XML or binary, read by Python's plistlib. */
export function readPlists(paths: readonly string[]): Read<PlistValue>[] {
  return readWith('read-plists.py', paths);
}

/** JSON files, read by Python's json; duplicate names are rejected. */
export function readJsons(paths: readonly string[]): Read<unknown>[] {
  return readWith('read-json.py', paths);
}

/** XML files, read by Python's xml.etree. */
export function readXmls(paths: readonly string[]): Read<XmlElement>[] {
  return readWith('read-xml.py', paths);
}

function readWith<Value>(script: string, paths: readonly string[]): Read<Value>[] {
  const ran = ranProgram(['python3', resolve('test/helpers/proof', script), ...paths], {
    PYTHONDONTWRITEBYTECODE: '1',
  });
  if (ran.status !== 0) throw new Error(`${script} failed: ${ran.err}`);
  const lines = ran.out.toString().split('\n').slice(0, -1);
  if (lines.length !== paths.length)
    throw new Error(`${script} answered ${lines.length} times for ${paths.length} files`);
  return lines.map((line) => JSON.parse(line));
}

/** The same property lists as Python writes them in binary, next to the files. */
export function binaryPlists(paths: readonly string[]): string[] {
  const ran = ranProgram(['python3', resolve('test/helpers/proof/write-binary-plists.py'), ...paths]);
  if (ran.status !== 0) throw new Error(`Python cannot write property lists: ${ran.err}`);
  return paths.map((path) => `${path}.bin`);
}
