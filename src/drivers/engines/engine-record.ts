import { isObject, parseJson } from '../../json.ts';
import type { EngineName, EngineSpec } from '../driver.ts';
import type { PlacedFile, Shell } from '../shell.ts';
import type { Authority, Gateway } from './pull-guard.ts';

/** What is known about a started engine. */
export interface StartedEngine {
  spec: EngineSpec;
  /** The registry gateway that the engine, or its clients, were configured with. */
  gateway?: Gateway;
  /** Topmost directory created for a file outside our directories. */
  made?: string;
}

/**
 * The spec that an engine was started with. Written before anything else and removed after everything else, so while it exists there may be
 * something to stop.
 */
export function engineRecord(shell: Shell, file: string) {
  const placed = ({ spec, gateway, made }: StartedEngine): PlacedFile => ({
    path: file,
    text: `${JSON.stringify({ ...spec, gateway, made })}\n`,
  });
  return {
    /** As a file among others, for the first of them. */
    placed,
    async read(): Promise<StartedEngine | 'unreadable' | undefined> {
      const text = await shell.read(file);
      return text === undefined ? undefined : (parseRecord(text) ?? 'unreadable');
    },
    write: (started: StartedEngine) => shell.write(file, placed(started).text),
    /** After those places. */
    remove: (...before: string[]) => shell.arrange({ absent: [...before, file], directories: [], files: [] }),
  };
}

export type EngineRecord = ReturnType<typeof engineRecord>;

const NAMES: readonly EngineName[] = ['moby', 'containerd'];
const STORAGE: readonly EngineSpec['storageDriver'][] = ['classic', 'snapshotter', 'auto'];

function parseRecord(text: string): StartedEngine | undefined {
  const value = parseJson(text);
  if (!isObject(value) || !isObject(value.allowedImages)) return undefined;
  const gateway = gatewayOf(value.gateway);
  const { enabled, patterns } = value.allowedImages;
  const name = NAMES.find((known) => known === value.name);
  const storageDriver = STORAGE.find((known) => known === value.storageDriver);
  if (!name || !storageDriver || typeof value.webAssembly !== 'boolean' || typeof enabled !== 'boolean')
    return undefined;
  if (!Array.isArray(patterns)) return undefined;
  const texts = patterns.filter((pattern) => typeof pattern === 'string');
  const spec = { name, storageDriver, webAssembly: value.webAssembly, allowedImages: { enabled, patterns: texts } };
  return { spec, ...(gateway ? { gateway } : {}), ...(typeof value.made === 'string' ? { made: value.made } : {}) };
}

function gatewayOf(value: unknown): Gateway | undefined {
  if (!isObject(value) || typeof value.port !== 'number' || typeof value.secret !== 'string') return undefined;
  if (value.secret === '') return undefined;
  const authority = authorityOf(value.authority);
  return { port: value.port, secret: value.secret, ...(authority ? { authority } : {}) };
}

function authorityOf(value: unknown): Authority | undefined {
  if (!isObject(value) || typeof value.certificate !== 'string' || typeof value.key !== 'string') return undefined;
  return { certificate: value.certificate, key: value.key };
}

/** Whether an engine started with one spec already satisfies the other. */
export function sameSpec(a: EngineSpec, b: EngineSpec): boolean {
  return canonical(a) === canonical(b);
}

/** Whether applying its patterns live turns an engine from one spec to the other. */
export function differsInPatterns(a: EngineSpec, b: EngineSpec): boolean {
  return sameSpec({ ...a, allowedImages: { ...a.allowedImages, patterns: b.allowedImages.patterns } }, b);
}

function canonical({ name, storageDriver, webAssembly, allowedImages }: EngineSpec): string {
  return JSON.stringify([name, storageDriver, webAssembly, allowedImages.enabled, allowedImages.patterns]);
}
