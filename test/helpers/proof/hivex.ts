import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { emptyHive } from './empty-hive.ts';
import { ranProgram } from './program.ts';
import { hexBytes, type RegistryExport, type RegistryReading, registryValue } from './registry.ts';

/** Names and values are UTF-8, whatever the locale. */
const ENV = { PERL_UNICODE: 'SD' };

/**
 * Every key and value below `root` after hivexregedit has merged the text into an empty hive.
 * @param root `HKEY_…\SOFTWARE`
 * @throws Error with the message of hivexregedit for a line that it cannot parse.
 */
export function readByHivex(text: string, root: string): RegistryExport {
  const folder = mkdtempSync(join(tmpdir(), 'rdctl-hive-'));
  try {
    const [hive, file] = [join(folder, 'hive'), join(folder, 'profile.reg')];
    writeFileSync(hive, emptyHive());
    writeFileSync(file, inItsManner(text));
    const merged = ranProgram(['hivexregedit', '--merge', '--prefix', root, hive, file], ENV);
    if (merged.status !== 0) throw new Error(`hivexregedit: ${merged.err}`);
    const exported = ranProgram(['hivexregedit', '--export', '--prefix', root, hive, '\\'], ENV);
    if (exported.status !== 0) throw new Error(`hivexregedit: ${exported.err}`);
    return { keys: readExport(exported.out.toString()), file: exported.out };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Two things that Windows accepts and hivexregedit does not: a key without a blank line before it, and a DWORD with fewer than
 * eight digits. Everything else is left to it.
 */
function inItsManner(text: string): string {
  const lines = text.split('\n').flatMap((line) => (line.startsWith('[') ? ['', line] : [line]));
  return lines
    .map((line) => line.replace(/=dword:([0-9a-f]{1,8})$/, (_, digits) => `=dword:${digits.padStart(8, '0')}`))
    .join('\n');
}

/** Its export has one line per key and value, does not wrap, and writes all types but DWORD as bytes. */
function readExport(text: string): RegistryReading {
  const reading: RegistryReading = new Map();
  let values = new Map();
  for (const line of text.split('\n')) {
    if (line === '' || line === 'Windows Registry Editor Version 5.00') continue;
    const key = /^\[(.*)\]$/s.exec(line)?.[1];
    if (key !== undefined) {
      values = new Map();
      reading.set(key, values);
      continue;
    }
    const [, quoted, dword, type = '', bytes = ''] =
      /^(?:@|"((?:[^"\\]|\\["\\])*)")=(?:dword:([0-9a-f]{8})|hex\(([0-9a-f]+)\):((?:[0-9a-f]{2},?)*))$/s.exec(line) ??
      unread(line);
    const name = (quoted ?? '').replace(/\\(["\\])/g, '$1');
    const data = dword === undefined ? hexBytes(bytes) : Buffer.from(dword, 'hex').reverse();
    values.set(name, registryValue(dword === undefined ? Number.parseInt(type, 16) : 4, data));
  }
  return reading;
}

function unread(line: string): never {
  throw new Error(`not a line of an export: ${line}`);
}
