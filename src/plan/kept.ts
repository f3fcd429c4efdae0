import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { leafAt, leaves, setLeaf } from '../settings/leaf-paths.ts';
import { MACHINE_FIELDS } from '../settings/machine-options.gen.ts';
import { readMachineOptions } from '../settings/machine-options.ts';
import type { MaintenanceWindow } from '../settings/maintenance-window.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import type { WatchRules } from '../settings/watch-rules.ts';
import type { Change, PlanRequest } from './change.ts';
import { isMachinePath } from './diff.ts';
import { forwardKeyOf, forwardName, type WantedForwards } from './port-forwards.ts';

/** A profile that the service keeps, and compares with the desktop after every change. */
export interface KeptProfile {
  /** `metadata.name` */
  name: string;
  /** Composed and checked by the tool. Secrets are in it as values. */
  request: PlanRequest;
  watch: WatchRules;
  maintenance?: MaintenanceWindow;
  files: { path: string; sha256: string }[];
  /** Where the profile mentions a field, by path: `/home/me/team.yaml:7:5`. */
  places: Record<string, string>;
  /** RFC 3339: its last apply. */
  appliedAt: string;
  /** Version of the desired state that its last apply led to. */
  generation: number;
  /** Names of the changes of that apply that are still to be made. */
  pending: string[];
}

/** A maintenance window as a client sends it: `Sat 02:00-04:00`, `7d`. */
export interface SentWindow {
  window: string;
  maxDefer?: string;
}

/** What carries a plan out. `set`: a write of settings, which is not refused because a kept profile sets it back. */
export const PLANNED_HOWS = ['apply', 'rollback', 'set'] as const;
export type PlannedHow = (typeof PLANNED_HOWS)[number];

/** How a client wants its profile kept. */
export interface SentKeep {
  /** `metadata.name` */
  name: string;
  watch: WatchRules;
  maintenance?: SentWindow;
  places?: Record<string, string>;
  /** The request with what this apply skips, because it is kept as well; absent where nothing is skipped. */
  whole?: PlanRequest;
  /** This apply does not wait for the window. */
  now?: boolean;
}

/** `containerEngine.name`, `application.extensions.installed[example/tool]` */
export function changeName({ path, key }: Pick<Change, 'path' | 'key'>): string {
  return key === undefined ? path : `${path}[${key}]`;
}

const WHOLE = '*';

/** The fields that a request decides: paths, and for maps their keys, or `*` where it is exclusive. */
function managed({ settings, machine, state, prune, portForwards }: PlanRequest): Map<string, Set<string>> {
  const fields = new Map<string, Set<string>>();
  const add = (path: string, keys: readonly string[]) => fields.set(path, new Set(keys));
  const addValue = (path: string, value: JsonValue) =>
    add(path, isObject(value) && !prune.includes(path) ? Object.keys(value) : [WHOLE]);
  for (const [path, value] of leaves(settings)) if (path !== 'version') addValue(path, value);
  for (const { path } of MACHINE_FIELDS) {
    const value = leafAt({ machine: machine ?? {} }, path);
    if (value !== undefined) addValue(path, value);
  }
  for (const path of prune) add(path, [WHOLE]);
  if (state !== 'unmanaged') add('state', [WHOLE]);
  if (portForwards) {
    const { entries, exclusive } = portForwards;
    add('portForwards', exclusive ? [WHOLE] : entries.map(forwardName));
  }
  return fields;
}

/** Fields that both requests decide, which only one kept profile may. */
export function commonFields(one: PlanRequest, other: PlanRequest): string[] {
  const theirs = managed(other);
  return [...managed(one)].flatMap(([path, keys]) => {
    const others = theirs.get(path);
    if (!others || keys.size === 0 || others.size === 0) return [];
    if (keys.has(WHOLE) || others.has(WHOLE)) return [path];
    return [...keys].filter((key) => others.has(key)).map((key) => changeName({ path, key }));
  });
}

/** The part of a request that these of its changes make, and nothing else. */
export function partialRequest(request: PlanRequest, changes: readonly Change[]): PlanRequest {
  const settings: JsonObject = { version: SCHEMA_VERSION };
  const block: JsonObject = {};
  const ofSettings = changes.filter(({ path }) => path !== 'portForwards' && path !== 'state');
  for (const { path, key } of ofSettings) {
    const isMachine = isMachinePath(path);
    const source: JsonObject = isMachine ? { machine: request.machine ?? {} } : request.settings;
    const target = isMachine ? block : settings;
    const value = leafAt(source, path);
    if (key !== undefined) {
      const known = leafAt(target, path);
      const entry = isObject(value) && Object.hasOwn(value, key) ? value[key] : null;
      setLeaf(target, path, { ...(isObject(known) ? known : {}), [key]: entry ?? null });
    } else if (value !== undefined) setLeaf(target, path, value);
  }
  const { options } = readMachineOptions(block.machine ?? {});
  const forwards = changes.filter(({ path }) => path === 'portForwards');
  return {
    settings,
    ...(Object.keys(options).length === 0 ? {} : { machine: options }),
    state: changes.some(({ path }) => path === 'state') ? request.state : 'unmanaged',
    prune: [],
    ...(forwards.length === 0 ? {} : { portForwards: partialForwards(request.portForwards, forwards) }),
  };
}

function partialForwards(wanted: WantedForwards | undefined, changes: readonly Change[]): WantedForwards {
  const entries = changes.flatMap(({ key = '', action }) => {
    const entry = wanted?.entries.find((each) => forwardName(each) === key);
    if (action === 'delete') return [{ ...(entry ?? forwardKeyOf(key)), hostPort: null }];
    return entry ? [entry] : [];
  });
  return { entries, exclusive: false };
}
