import { isObject, type JsonValue } from '../json.ts';
import { readIfThere, writeFileAtomic } from '../storage/atomic-file.ts';
import { ioError } from '../storage/io-error.ts';
import { readForward, type WantedForward } from './forward.ts';

const FORMAT = 1;

/** The forwards that are to be there, kept over restarts. */
export interface ForwardStore {
  /** `undefined` for a file that holds none that can be used. @throws RdError `ERR_IO` when it cannot be read. */
  load(): Promise<WantedForward[] | undefined>;
  /** Old or new, never half. @throws RdError `ERR_IO`. */
  save(wanted: readonly WantedForward[]): Promise<void>;
}

/** Keeps them in one file. */
export function forwardFile(path: string): ForwardStore {
  return {
    async load() {
      const text = await readIfThere(path).catch((cause: unknown) => {
        throw ioError('read', path, cause);
      });
      return text === undefined ? [] : interpret(text);
    },
    save: (wanted) => writeFileAtomic(path, `${JSON.stringify({ format: FORMAT, portForwards: wanted }, null, 2)}\n`),
  };
}

function interpret(text: string): WantedForward[] | undefined {
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value.format !== FORMAT || !Array.isArray(value.portForwards)) return undefined;
  try {
    return value.portForwards.filter(isObject).map(readForward);
  } catch {
    return undefined;
  }
}
