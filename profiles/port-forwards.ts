import { isObject, type JsonValue } from '../src/json.ts';
import { child, describe, type Report, reportUnknown } from './report.ts';

/** A service of the cluster that should answer on a port of this machine. */
export interface PortForward {
  namespace: string;
  service: string;
  /** Number or name of the service's port. */
  k8sPort: number | string;
  hostPort: number;
}

const KEYS = ['namespace', 'service', 'k8sPort', 'hostPort'] as const;

/** Checks `portForwards`; entries with a finding are left out. */
export function readPortForwards(value: JsonValue, report: Report): PortForward[] {
  if (!Array.isArray(value)) {
    report('/portForwards', `portForwards must be a list, not ${describe(value)}`, { expected: 'array' });
    return [];
  }
  return value.flatMap((entry, index) => {
    const forward = readForward(entry, child('/portForwards', index), report);
    return forward ? [forward] : [];
  });
}

function readForward(entry: JsonValue, pointer: string, report: Report): PortForward | undefined {
  if (!isObject(entry)) {
    report(pointer, `a port forward is a mapping, not ${describe(entry)}`, {
      expected: `object with ${KEYS.join(', ')}`,
    });
    return undefined;
  }
  for (const key of Object.keys(entry)) {
    if (!KEYS.some((known) => known === key)) reportUnknown(child(pointer, key), key, KEYS, report);
  }
  const { namespace, service, k8sPort, hostPort } = entry;
  const problems: [string, boolean, string][] = [
    ['namespace', isName(namespace), 'text'],
    ['service', isName(service), 'text'],
    ['k8sPort', isName(k8sPort) || isPort(k8sPort), 'port number from 1 to 65535 or port name'],
    ['hostPort', isPort(hostPort), 'port number from 1 to 65535'],
  ];
  for (const [key, good, expected] of problems) {
    const found = entry[key];
    if (good) continue;
    if (found === undefined) report(pointer, `${key} is missing`, { expected });
    else report(child(pointer, key), `${key} cannot be ${describe(found)}`, { expected });
  }
  if (!isName(namespace) || !isName(service) || !isPort(hostPort)) return undefined;
  if (!isName(k8sPort) && !isPort(k8sPort)) return undefined;
  return { namespace, service, k8sPort, hostPort };
}

function isName(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '';
}

function isPort(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535;
}
