import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { hasShape, isObject, parseJson } from '../../../json.ts';
import { refuseNewer } from '../../../os/record.ts';
import { parseMachineSpec } from '../shared/machine-spec.ts';
import { emptyModel, type Model } from './model.ts';

const BLOCK = 4096;
const SPARE = 2048;

/** Persists a model between observations. Synchronous, so that a change is atomic. */
export interface ModelStore {
  load(): Model;
  save(model: Model): void;
  /** Calls back when a running part of the model stops, whatever changed it. Returns the function that stops watching. */
  watch(ended: () => void): () => void;
  /** Path of the model; absent if it is in memory. */
  readonly file?: string;
}

/**
 * Keeps the model in `machine.json` of a directory, written atomically, so that the machine outlives the service in any case. `load` throws
 * `ERR_DRIVER_TERMINAL` for an invalid file, `ERR_OTHER_VERSION` for a file of a newer release.
 */
export function fileStore(directory: string): ModelStore {
  const file = join(directory, 'machine.json');
  /** The model as last read or written here. */
  let known: Model | undefined;
  function load(): Model {
    const text = readIfPresent(file);
    known = text === undefined ? emptyModel() : parse(text, file);
    return known;
  }
  function look(ended: () => void): void {
    const before = known;
    try {
      if (before === undefined || !hasEnded(before, load())) return;
    } catch {
      // The next observation reports the problem of the file.
    }
    ended();
  }
  return {
    file,
    load,
    watch: (ended) => watchFile(directory, basename(file), () => look(ended)),
    save(model) {
      const text = `${JSON.stringify(model, undefined, 2)}\n`;
      known = model;
      const temporary = join(directory, `.machine.json.${randomBytes(6).toString('hex')}.tmp`);
      try {
        write(temporary, withSpace(text), 'w');
        renameSync(temporary, file);
      } catch (error) {
        rmSync(temporary, { force: true });
        if (!isFull(error)) throw error;
        const { size } = statSync(file);
        if (Buffer.byteLength(text) > size) throw error;
        // On a full disk, a stop reuses the space of the file that it replaces.
        write(file, text.padEnd(size), 'r+');
      }
    },
  };
}

/** Watches the file. Without a watch, for example when the system has no more of them, the next observation detects the change. */
function watchFile(directory: string, name: string, changed: () => void): () => void {
  try {
    const watcher = watch(directory, { persistent: false }, (_event, file) => {
      if (file === name) changed();
    });
    watcher.on('error', () => watcher.close());
    return () => watcher.close();
  } catch {
    return () => undefined;
  }
}

/** True if a part that ran no longer runs. */
export function hasEnded(before: Model, after: Model): boolean {
  const running = ({ machine, engines, cluster }: Model) => [
    machine.state === 'on',
    engines.moby.process.state === 'running',
    engines.containerd.process.state === 'running',
    cluster.state === 'running',
  ];
  const now = running(after);
  return running(before).some((ran, index) => ran && !now[index]);
}

/** Pads the text with blanks that later contents may use. */
function withSpace(text: string): string {
  return text.padEnd(Math.ceil((text.length + SPARE) / BLOCK) * BLOCK);
}

function write(file: string, text: string, how: 'w' | 'r+'): void {
  const handle = openSync(file, how, 0o600);
  try {
    writeFileSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new RdError('ERR_IO', `The state of the simulated machine cannot be read from ${file}.`, { cause: error });
  }
}

function parse(text: string, file: string): Model {
  const value = parseJson(text);
  refuseNewer(value, file);
  const model = hasShape(value, emptyModel()) ? withWholeSpecs(value) : undefined;
  if (model) return model;
  throw new RdError('ERR_DRIVER_TERMINAL', `The state of the simulated machine in ${file} is damaged.`, {
    advice: 'Delete the file; this deletes the simulated machine with its images and its cluster.',
  });
}

/** Returns the model with specs as this release knows them, or undefined if the spec of a running part is damaged. */
function withWholeSpecs(model: Model): Model | undefined {
  const { machine, engines, cluster } = model;
  const running = [engines.moby, engines.containerd].map(({ process }) => process);
  if (running.some((process) => process.state === 'running' && !isObject(process.spec))) return undefined;
  if (cluster.state === 'running' && !isObject(cluster.spec)) return undefined;
  if (machine.state !== 'on') return model;
  const spec = parseMachineSpec(machine.spec);
  return spec && { ...model, machine: { state: 'on', spec } };
}
