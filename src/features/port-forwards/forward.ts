import { RdError } from '../../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json.ts';
import { setAside } from '../../os/atomic-file.ts';
import { readRecord, writeRecord } from '../../os/record.ts';
import type { ForwardKey } from '../../plan/change.ts';
import type { DesiredForward } from '../../plan/port-forwards.ts';

/** Matches a label of RFC 1123, such as the name of a namespace or service. */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** Matches a port name: at most 15 letters, digits and inner hyphens, at least one of them a letter. */
const PORT_NAME = /^(?=[-0-9]*[a-z])[a-z0-9](?:-?[a-z0-9]){0,14}$/;
const HIGHEST_PORT = 65_535;

/**
 * Parses a forward from a body with all its keys. Ports may be decimal strings; an empty namespace is `default`.
 * Throws `ERR_BODY_INVALID` with a clause that names the error.
 */
export function readForward(body: JsonObject): DesiredForward {
  const { hostPort } = body;
  const port = numberOf(hostPort);
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 0 || port > HIGHEST_PORT) {
    throw invalid('hostPort', hostPort, `a number from 0 to ${HIGHEST_PORT}`);
  }
  const { namespace, service, k8sPort } = body;
  return { ...readKey(namespace, service, k8sPort), hostPort: port };
}

/** Parses the key of a forward. Throws `ERR_BODY_INVALID` with a clause that names the error. */
export function readKey(
  namespace: JsonValue | undefined,
  service: JsonValue | undefined,
  k8sPort: JsonValue | undefined,
): ForwardKey {
  const space = namespace === '' ? 'default' : namespace;
  if (typeof space !== 'string' || !LABEL.test(space)) throw invalid('namespace', namespace, 'the name of a namespace');
  if (typeof service !== 'string' || !LABEL.test(service)) throw invalid('service', service, 'the name of a service');
  const port = numberOf(k8sPort);
  if (typeof port === 'number' ? !isPort(port) : typeof port !== 'string' || !PORT_NAME.test(port)) {
    throw invalid('k8sPort', k8sPort, `a number from 1 to ${HIGHEST_PORT}, or the name of a port`);
  }
  return { namespace: space, service, k8sPort: port };
}

function isPort(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= HIGHEST_PORT;
}

/** Converts a decimal string to a number; leaves anything else unchanged. */
function numberOf(value: JsonValue | undefined): number | string {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return Number.NaN;
  return /^[0-9]{1,6}$/.test(value) ? Number(value) : value;
}

function invalid(key: string, value: JsonValue | undefined, expected: string): RdError {
  const shown = JSON.stringify(value) ?? 'nothing';
  const text = shown.length > 80 ? `${shown.slice(0, 80)}…` : shown;
  return new RdError('ERR_BODY_INVALID', `${key} must be ${expected}, not ${text}`);
}

const FORMAT = 1;

export type ForwardStore = ReturnType<typeof forwardFile>;

/** Returns access to the file of the desired forwards. */
export function forwardFile(path: string, now: () => number = Date.now) {
  return {
    /**
     * Returns the valid entries of the file. A file with anything else is set aside first, so that the next save loses nothing; `notice` reports
     * that.
     * @throws RdError `ERR_IO` when it cannot be read.
     */
    async load(): Promise<{ desired: DesiredForward[]; notice?: string }> {
      const record = await readRecord(path);
      const { desired, whole } = record === undefined ? { desired: [], whole: true } : forwardsIn(record);
      if (whole) return { desired };
      const movedTo = await setAside(path, now());
      const kept = desired.length === 0 ? 'none of them is in force' : `${desired.length} of them could be read`;
      return {
        desired,
        notice: `The file of the port forwards has a mistake; ${kept}, and it was set aside as ${movedTo}.`,
      };
    },
    /** Saves the desired forwards atomically. @throws RdError `ERR_IO`. */
    save: (desired: readonly DesiredForward[]) => writeRecord(path, { format: FORMAT, portForwards: desired }),
  };
}

/** Parses the forwards of a record. `whole` is false when the file contains anything else. */
function forwardsIn(record: JsonObject | 'damaged'): { desired: DesiredForward[]; whole: boolean } {
  if (record === 'damaged' || record.format !== FORMAT || !Array.isArray(record.portForwards)) {
    return { desired: [], whole: false };
  }
  const read = record.portForwards.map(usable);
  const desired = read.filter((forward) => forward !== undefined);
  return { desired, whole: desired.length === read.length };
}

function usable(value: JsonValue): DesiredForward | undefined {
  try {
    return isObject(value) ? readForward(value) : undefined;
  } catch {
    return undefined;
  }
}
