import { isObject } from '../../json.ts';
import type { EngineName, EngineSpec } from '../driver.ts';
import type { Shell } from '../shell.ts';

/**
 * The spec that an engine was started with. It is written before anything else and removed after everything else, so
 * while it exists there may be something to stop.
 */
export interface EngineRecord {
  read(): Promise<EngineSpec | 'unreadable' | undefined>;
  write(spec: EngineSpec): Promise<void>;
  remove(): Promise<void>;
}

export function engineRecord(shell: Shell, file: string): EngineRecord {
  return {
    async read() {
      const text = await shell.read(file);
      return text === undefined ? undefined : (parseSpec(text) ?? 'unreadable');
    },
    write: (spec) => shell.write(file, `${JSON.stringify(spec)}\n`),
    remove: () => shell.remove(file),
  };
}

const NAMES: readonly EngineName[] = ['moby', 'containerd'];
const STORAGE: readonly EngineSpec['storageDriver'][] = ['classic', 'snapshotter', 'auto'];

function parseSpec(text: string): EngineSpec | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || !isObject(value.allowedImages)) return undefined;
  const { enabled, patterns } = value.allowedImages;
  const name = NAMES.find((known) => known === value.name);
  const storageDriver = STORAGE.find((known) => known === value.storageDriver);
  if (!name || !storageDriver || typeof value.webAssembly !== 'boolean' || typeof enabled !== 'boolean')
    return undefined;
  if (!Array.isArray(patterns)) return undefined;
  return {
    name,
    storageDriver,
    webAssembly: value.webAssembly,
    allowedImages: { enabled, patterns: patterns.filter((pattern) => typeof pattern === 'string') },
  };
}

/** Whether an engine started with one spec already is what the other asks for. */
export function sameSpec(a: EngineSpec, b: EngineSpec): boolean {
  return canonical(a) === canonical(b);
}

function canonical({ name, storageDriver, webAssembly, allowedImages }: EngineSpec): string {
  return JSON.stringify([name, storageDriver, webAssembly, allowedImages.enabled, allowedImages.patterns]);
}
