import { isDeepStrictEqual } from 'node:util';
import { hasShape, isObject, parseJson } from '../../json.ts';
import type { EngineSpec } from '../driver.ts';
import type { PlacedFile, Shell } from '../shell.ts';
import type { Authority, Gateway } from './pull-guard.ts';

/** The facts recorded about a started engine. */
export interface StartedEngine {
  spec: EngineSpec;
  /** The registry gateway that the engine, or its clients, were configured with. */
  gateway?: Gateway;
}

/**
 * Returns the record of the spec that an engine was started with. It is written before anything else and removed after everything else, so while it
 * exists there may be something to stop.
 */
export function engineRecord(shell: Shell, file: string) {
  const placed = ({ spec, gateway }: StartedEngine): PlacedFile => ({
    path: file,
    text: `${JSON.stringify({ ...spec, gateway })}\n`,
  });
  return {
    /** Returns the record as a file to write together with others; it must come first. */
    placed,
    async read(): Promise<StartedEngine | 'unreadable' | undefined> {
      const text = await shell.read(file);
      return text === undefined ? undefined : (parseRecord(text) ?? 'unreadable');
    },
    write: (started: StartedEngine) => shell.write(file, placed(started).text),
    /** Removes the given paths, followed by the record itself. */
    remove: (...before: string[]) => shell.arrange({ absent: [...before, file], directories: [], files: [] }),
  };
}

export type EngineRecord = ReturnType<typeof engineRecord>;

const SPEC: EngineSpec = {
  name: 'moby',
  storageDriver: 'auto',
  webAssembly: false,
  allowedImages: { enabled: false, patterns: [''] },
};
const NAMES: readonly string[] = ['moby', 'containerd'];
const STORAGE: readonly string[] = ['classic', 'snapshotter', 'auto'];
const GATEWAY: Gateway = { port: 0, secret: '' };
const AUTHORITY: Authority = { certificate: '', key: '' };

/** Root in a guest can write it. */
function parseRecord(text: string): StartedEngine | undefined {
  const value = parseJson(text);
  if (!isObject(value)) return undefined;
  const { gateway: stored, ...spec } = value;
  if (!hasShape(spec, SPEC) || !NAMES.includes(spec.name) || !STORAGE.includes(spec.storageDriver)) return undefined;
  if (!hasShape(stored, GATEWAY)) return { spec };
  const { port, secret, authority } = stored;
  return { spec, gateway: { port, secret, ...(hasShape(authority, AUTHORITY) ? { authority } : {}) } };
}

/** True if applying its patterns live turns an engine from one spec to the other. */
export function differsInPatterns(a: EngineSpec, b: EngineSpec): boolean {
  const { patterns } = b.allowedImages;
  return isDeepStrictEqual({ ...a, allowedImages: { ...a.allowedImages, patterns } }, b);
}
