import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { statusOf } from './program.ts';
import { hexBytes, type RegistryExport, type RegistryReading, type RegistryValue, registryValue } from './registry.ts';

/** A Windows registry of its own. */
export interface WineRegistry {
  /**
   * Imports a file as `reg.exe import` does, returns the key with everything below it, and deletes it again. Lines that it cannot
   * parse are skipped silently, so only what is returned counts.
   */
  read(file: Buffer, key: string): RegistryExport;
  end(): void;
}

/** Creates the registry; takes a few seconds. */
export function wineRegistry(): WineRegistry {
  const folder = mkdtempSync(join(tmpdir(), 'rdctl-wine-'));
  const env = {
    WINEPREFIX: join(folder, 'prefix'),
    WINEDEBUG: '-all',
    WINEDLLOVERRIDES: 'mscoree,mshtml=',
    DISPLAY: '',
  };
  const wine = (...argv: string[]) => statusOf(['wine', ...argv], env);
  const end = () => {
    statusOf(['wineserver', '-k'], env);
    statusOf(['wineserver', '-w'], env);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const status = wine('wineboot', '-i');
    if (status !== 0) throw new Error(`wine cannot make a registry: status ${status}`);
  } catch (error) {
    end();
    throw error;
  }
  return {
    end,
    read(file, key) {
      const [imported, exported] = [join(folder, 'profile.reg'), join(folder, 'export.reg')];
      writeFileSync(imported, file);
      rmSync(exported, { force: true });
      const status = wine('reg', 'import', imported);
      if (status !== 0) throw new Error(`wine reg import: status ${status}`);
      wine('reg', 'export', key, exported, '/y');
      if (!existsSync(exported)) return { keys: new Map(), file: Buffer.alloc(0) };
      wine('reg', 'delete', key, '/f');
      const written = readFileSync(exported);
      return { keys: readExport(written), file: written };
    },
  };
}

/** UTF-16LE with a byte order mark; bytes are wrapped with a backslash at the end of a line. */
function readExport(file: Buffer): RegistryReading {
  const text = file.toString('utf16le').replace(/\\\r\n {2}/g, '');
  const reading: RegistryReading = new Map();
  let values = new Map<string, RegistryValue>();
  for (const line of text.split('\r\n').slice(1)) {
    if (line === '') continue;
    const key = /^\[(.*)\]$/s.exec(line)?.[1];
    if (key !== undefined) {
      values = new Map();
      reading.set(key, values);
      continue;
    }
    const [, quoted, text, dword, type = '3', bytes = ''] =
      /^(?:@|"((?:[^"\\]|\\.)*)")=(?:"((?:[^"\\]|\\.)*)"|dword:([0-9a-f]{8})|hex(?:\(([0-9a-f]+)\))?:((?:[0-9a-f]{2},?)*))$/s.exec(
        line,
      ) ?? unread(line);
    values.set(unescaped(quoted ?? ''), text === undefined ? ofData(dword, type, bytes) : { text: unescaped(text) });
  }
  return reading;
}

function ofData(dword: string | undefined, type: string, bytes: string): RegistryValue {
  if (dword !== undefined) return { dword: Number.parseInt(dword, 16) };
  return registryValue(Number.parseInt(type, 16), hexBytes(bytes));
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', '0': '\0', '\\': '\\', '"': '"' };

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (whole, sign: string) => ESCAPES[sign] ?? unread(whole));
}

function unread(line: string): never {
  throw new Error(`not of an export: ${line.slice(0, 200)}`);
}
