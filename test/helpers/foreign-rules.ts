import { isDeepStrictEqual } from 'node:util';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';

const OFFERED = ['1.32.2', '1.31.6', '1.30.4', '1.29.10'];

/** Restarts, of those fields that cost one on Linux, by name in the newest shape; older places are looked up (api facts, 11.2). */
const RESTART = [
  'containerEngine.mobyStorageDriver',
  'kubernetes.version',
  'containerEngine.allowedImages.enabled',
  'containerEngine.name',
  'experimental.containerEngine.webAssembly.enabled',
  'kubernetes.enabled',
  'kubernetes.options.flannel',
  'kubernetes.options.traefik',
  'kubernetes.port',
  'experimental.virtualMachine.sshPortForwarder',
  'virtualMachine.mount.type',
  'experimental.virtualMachine.mount.type',
  'virtualMachine.type',
  'experimental.virtualMachine.type',
];
/** Compared even when not proposed, and then without `desired` (api facts, 11.3). */
const PHANTOM = ['experimental.virtualMachine.diskSize', 'virtualMachine.memoryInGB', 'virtualMachine.numberCPUs'];
const OTHER_PLATFORM = ['kubernetes.ingress.localhostOnly', 'WSL.integrations'];
const ENUMS: Record<string, string[]> = { 'containerEngine.name': ['containerd', 'moby', 'docker'] };

/** What a proposal would restart, compared with the running settings, including the known bugs. */
export function restartReasons(proposal: JsonObject, running: JsonObject): Record<string, JsonObject> {
  const found: Record<string, JsonObject> = {};
  const merged = merge(structuredClone(running), proposal);
  for (const path of RESTART) {
    const current = leafAt(running, path);
    const desired = leafAt(proposal, path);
    if (desired === undefined || desired === current) continue;
    if (path.startsWith('kubernetes.') && path !== 'kubernetes.enabled' && !clusterIn(merged)) continue;
    const lower = path === 'kubernetes.version' && order(String(desired)) < order(String(current));
    found[path] = { current: current ?? null, desired, severity: lower ? 'reset' : 'restart' };
  }
  for (const path of PHANTOM) {
    const current = leafAt(running, path);
    const desired = leafAt(proposal, path);
    if (current === undefined || desired === current) continue;
    found[path] = { current, ...(desired === undefined ? {} : { desired }), severity: 'restart' };
  }
  return found;
}

/** Every line with which a payload is refused. */
export function refusals(payload: JsonObject, settings: JsonObject, locked: JsonObject): string[] {
  return flat(payload, settings).flatMap(([path, value]) => {
    const current = leafAt(settings, path);
    if (path === 'version') return value === current ? [] : [`Changing field "version" via the API isn't supported.`];
    if (current === undefined || isDeepStrictEqual(value, current)) return [];
    if (OTHER_PLATFORM.includes(path)) return [`Changing field "${path}" via the API isn't supported.`];
    if (
      isObject(current) !== isObject(value) ||
      (!isObject(current) && !Array.isArray(current) && typeof value !== typeof current)
    ) {
      return [`Invalid value for "${path}": <${JSON.stringify(value)}>`];
    }
    const allowed = ENUMS[path];
    if (allowed && !allowed.includes(String(value)))
      return [`Invalid value for "${path}": <${JSON.stringify(value)}>; must be one of ${JSON.stringify(allowed)}`];
    if (path === 'kubernetes.version' && !OFFERED.includes(String(value)))
      return [`Kubernetes version "${value}" not found.`];
    return leafAt(locked, path) === undefined ? [] : [`field "${path}" is locked`];
  });
}

export function clusterIn(settings: JsonObject): boolean {
  return leafAt(settings, 'kubernetes.enabled') === true;
}

export function canonical(payload: JsonObject): JsonObject {
  const copy = structuredClone(payload);
  if (leafAt(copy, 'containerEngine.name') === 'docker') setLeaf(copy, 'containerEngine.name', 'moby');
  const version = leafAt(copy, 'kubernetes.version');
  if (typeof version === 'string') {
    setLeaf(copy, 'kubernetes.version', version.replace(/^v/, '').replace(/\+k3s\d+$/, ''));
  }
  return copy;
}

/** Leaves of a payload; a map in the settings counts as one. */
export function flat(payload: JsonObject, settings: JsonObject, prefix = ''): [string, JsonValue][] {
  return Object.entries(payload).flatMap(([key, value]): [string, JsonValue][] => {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    const maps = ['application.extensions.installed', 'WSL.integrations', 'diagnostics.mutedChecks'];
    return isObject(value) && !maps.includes(path) ? flat(value, settings, path) : [[path, value]];
  });
}

export function merge(into: JsonObject, payload: JsonObject): JsonObject {
  for (const [key, value] of Object.entries(payload)) {
    const known = into[key];
    if (value === null) delete into[key];
    else if (isObject(value) && isObject(known)) merge(known, value);
    else into[key] = structuredClone(value);
  }
  return into;
}

function order(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return major * 1e6 + minor * 1e3 + patch;
}
