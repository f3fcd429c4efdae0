import { isObject, type JsonValue } from '../../json.ts';
import { readIfThere, setAside, writeFileAtomic } from '../../os/atomic-file.ts';
import { ioError } from '../../os/io-error.ts';
import { readForward, type WantedForward } from './forward.ts';

const FORMAT = 1;

/** The desired forwards, persistent across restarts. */
export interface ForwardStore {
  /**
   * The valid entries of the file. A file with anything else is set aside first, so that the next save loses nothing; `notice` reports
   * that.
   * @throws RdError `ERR_IO` when it cannot be read.
   */
  load(): Promise<{ wanted: WantedForward[]; notice?: string }>;
  /** Atomic. @throws RdError `ERR_IO`. */
  save(wanted: readonly WantedForward[]): Promise<void>;
}

/** Keeps them in one file. */
export function forwardFile(path: string, now: () => number = Date.now): ForwardStore {
  return {
    async load() {
      const text = await readIfThere(path).catch((cause: unknown) => {
        throw ioError('read', path, cause);
      });
      const { wanted, whole } = text === undefined ? { wanted: [], whole: true } : interpret(text);
      if (whole) return { wanted };
      const movedTo = await setAside(path, now());
      const kept = wanted.length === 0 ? 'none of them is in force' : `${wanted.length} of them could be read`;
      return {
        wanted,
        notice: `The file of the port forwards has a mistake; ${kept}, and it was set aside as ${movedTo}.`,
      };
    },
    save: (wanted) => writeFileAtomic(path, `${JSON.stringify({ format: FORMAT, portForwards: wanted }, null, 2)}\n`),
  };
}

/** `whole` is false when the text contains an invalid entry. */
function interpret(text: string): { wanted: WantedForward[]; whole: boolean } {
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return { wanted: [], whole: false };
  }
  if (!isObject(value) || value.format !== FORMAT || !Array.isArray(value.portForwards)) {
    return { wanted: [], whole: false };
  }
  const read = value.portForwards.map(usable);
  const wanted = read.filter((forward) => forward !== undefined);
  return { wanted, whole: wanted.length === read.length };
}

function usable(value: JsonValue): WantedForward | undefined {
  try {
    return isObject(value) ? readForward(value) : undefined;
  } catch {
    return undefined;
  }
}
