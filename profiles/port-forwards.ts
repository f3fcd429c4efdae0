import { isObject, type JsonValue } from '../src/json.ts';
import { child, describe, type Report, reportUnknown } from './report.ts';

/** A service of the cluster that should answer on a port of this machine. */
export interface PortForward {
  namespace: string;
  service: string;
  /** Number or name of the service's port. */
  k8sPort: number | string;
  /** `null` asks for its removal. */
  hostPort: number | null;
}

const KEYS = ['namespace', 'service', 'k8sPort', 'hostPort'] as const;

/** Checks `portForwards`, each by itself and against the others; entries with a finding are left out. */
export function readPortForwards(value: JsonValue, report: Report): PortForward[] {
  if (!Array.isArray(value)) {
    report('/portForwards', `portForwards must be a list, not ${describe(value)}`, { expected: 'array' });
    return [];
  }
  const names = new Map<string, number>();
  const ports = new Map<number, number>();
  return value.flatMap((entry, index) => {
    const pointer = child('/portForwards', index);
    const forward = readForward(entry, pointer, report);
    if (!forward) return [];
    const { namespace, service, k8sPort, hostPort } = forward;
    const name = `${namespace}/${service}:${k8sPort}`;
    const twin = names.get(name);
    names.set(name, index);
    if (twin !== undefined) {
      report(pointer, `${name} is forwarded twice: entry ${twin + 1} of the list does it already`, {});
      return [];
    }
    const holder = hostPort === null ? undefined : ports.get(hostPort);
    if (hostPort !== null) ports.set(hostPort, index);
    if (holder !== undefined) {
      report(child(pointer, 'hostPort'), `hostPort ${hostPort} is taken by entry ${holder + 1} of the list`, {});
      return [];
    }
    return [forward];
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
    ['namespace', isLabel(namespace), 'name of a namespace'],
    ['service', isLabel(service), 'name of a service'],
    ['k8sPort', isPortName(k8sPort) || isPort(k8sPort), 'port number from 1 to 65535 or port name'],
    ['hostPort', hostPort === null || isPort(hostPort), 'port number from 1 to 65535, or null to remove the forward'],
  ];
  for (const [key, good, expected] of problems) {
    const found = entry[key];
    if (good) continue;
    if (found === undefined) report(pointer, `${key} is missing`, { expected });
    else report(child(pointer, key), `${key} cannot be ${describe(found)}`, { expected });
  }
  if (!isLabel(namespace) || !isLabel(service) || (hostPort !== null && !isPort(hostPort))) return undefined;
  if (!isPortName(k8sPort) && !isPort(k8sPort)) return undefined;
  return { namespace, service, k8sPort, hostPort };
}

/** Names that a cluster accepts; anything else would be refused only when it is applied. */
function isLabel(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(value);
}

function isPortName(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^(?=[-0-9]*[a-z])[a-z0-9](?:-?[a-z0-9]){0,14}$/.test(value);
}

function isPort(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535;
}
