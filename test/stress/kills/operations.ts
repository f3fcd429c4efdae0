import type { JsonObject } from '../../../src/json.ts';

/** The user's state, as far as operations change it. `settings` excludes installed extensions. */
export interface State {
  settings: JsonObject;
  extensions: readonly string[];
  /** Names, and the settings in each. */
  snapshots: Readonly<Record<string, JsonObject>>;
  /** Whether the service keeps the profile that enforces `HELD`. */
  kept: boolean;
}

/** What the kept profile enforces; operations and snapshots may differ from it for a moment only. */
export const HELD = { images: { showAll: false } };

/** The state once the kept profile is healed. */
export function healed(state: State): State {
  return state.kept ? { ...state, settings: changed(state.settings, HELD) } : state;
}

export interface Operation {
  argv: string[];
  /** The possible states after it ended or was killed at any moment; the state before is always one of them. */
  outcomes(before: State): State[];
  /** It writes another value than the kept profile. */
  contradicts?: true;
}

export interface Circumstances {
  /** A number that no operation used before. */
  serial: number;
  present: State;
  /** Settings of a first start, and those that an interrupted factory reset leaves: the copy from before the last change. */
  defaults: JsonObject;
  previous: JsonObject;
  /** Writes the profile and returns its path. */
  profile(settings: JsonObject): string;
  /** The file of the profile that is kept. */
  keepable: string;
}

/** In [0, 1). */
export type Random = () => number;

const EXTENSIONS = ['simulated/hello:1.0.0', 'simulated/panel:v1'];
const MOST_SNAPSHOTS = 4;

const nothing = () => [];

export function chosen(random: Random, at: Circumstances): Operation {
  const names = Object.keys(at.present.snapshots);
  const pick = <T>(of: readonly T[]): T | undefined => of[Math.floor(random() * of.length)];
  const name = pick(names);
  const kind = random() * 100;
  if (!at.present.kept && kind < 15) return keep(at);
  if (kind < 25) return apply(random, at);
  if (kind < 40) return set(random, at);
  if (kind < 55 && names.length < MOST_SNAPSHOTS) return create(`s${at.serial}`);
  if (kind < 70 && name !== undefined) return restore(name);
  if (kind < 76 && name !== undefined) return remove(name);
  if (kind < 84) return install(pick(EXTENSIONS) ?? '');
  if (kind < 88) return uninstall(pick(EXTENSIONS) ?? '');
  if (kind < 90 && at.present.kept) return release();
  if (kind < 92) return { argv: ['start', '--wait'], outcomes: nothing };
  if (kind < 96) return { argv: ['shutdown'], outcomes: nothing };
  return reset(at);
}

/** Fields in several groups, so that a mixture of old and new ones would show. */
function changed(settings: JsonObject, change: Record<string, JsonObject>): JsonObject {
  const groups = Object.entries(change).map(([group, fields]) => [
    group,
    { ...(settings[group] as JsonObject), ...fields },
  ]);
  return { ...settings, ...Object.fromEntries(groups) };
}

function apply(random: Random, { serial, profile }: Circumstances): Operation {
  const change = {
    containers: { namespace: `c${serial}` },
    images: { namespace: `i${serial}` },
    kubernetes: { port: 20_000 + serial },
    ...(random() < 0.3 ? { containerEngine: { name: random() < 0.5 ? 'moby' : 'containerd' } } : {}),
  };
  return {
    argv: ['apply', '--yes', '-f', profile(change)],
    outcomes: (before) => [{ ...before, settings: changed(before.settings, change) }],
  };
}

/** Sometimes also what a kept profile sets back. */
function set(random: Random, { serial }: Circumstances): Operation {
  const contradicts = random() < 0.6 ? true : undefined;
  const images = { namespace: `set-i${serial}`, ...(contradicts ? { showAll: true } : {}) };
  const change = { containers: { namespace: `set-c${serial}` }, images };
  const argv = ['set', '--containers.namespace', change.containers.namespace, '--images.namespace', images.namespace];
  return {
    argv: contradicts ? [...argv, '--images.show-all=true'] : argv,
    ...(contradicts ? { contradicts } : {}),
    outcomes: (before) => [{ ...before, settings: changed(before.settings, change) }],
  };
}

function keep({ keepable }: Circumstances): Operation {
  return {
    argv: ['apply', '--yes', '--keep', '-f', keepable],
    outcomes: (before) => [{ ...before, kept: true }],
  };
}

function release(): Operation {
  return { argv: ['release'], outcomes: (before) => [{ ...before, kept: false }] };
}

function create(name: string): Operation {
  return {
    argv: ['snapshot', 'create', name],
    outcomes: (before) => [{ ...before, snapshots: { ...before.snapshots, [name]: before.settings } }],
  };
}

function restore(name: string): Operation {
  return {
    argv: ['snapshot', 'restore', name],
    outcomes: (before) => [{ ...before, settings: before.snapshots[name] ?? {} }],
  };
}

function remove(name: string): Operation {
  return {
    argv: ['snapshot', 'delete', name],
    outcomes: (before) => {
      const { [name]: _, ...snapshots } = before.snapshots;
      return [{ ...before, snapshots }];
    },
  };
}

function install(image: string): Operation {
  return {
    argv: ['extension', 'install', image],
    outcomes: (before) => [{ ...before, extensions: [...new Set([...before.extensions, image])].sort() }],
  };
}

function uninstall(image: string): Operation {
  const [id = ''] = image.split(':');
  return {
    argv: ['extension', 'uninstall', id],
    outcomes: (before) => [{ ...before, extensions: before.extensions.filter((each) => each !== image) }],
  };
}

/** Snapshots stay. An interrupted one may have got anywhere, but each file is complete or absent. */
function reset({ defaults, previous }: Circumstances): Operation {
  return {
    argv: ['reset', '--factory', '--yes'],
    outcomes: (before) =>
      [before.settings, previous, defaults].flatMap((settings) =>
        subsets(before.extensions).flatMap((extensions) =>
          [before.kept, false].map((kept) => ({ ...before, settings, extensions, kept })),
        ),
      ),
  };
}

function subsets(of: readonly string[]): string[][] {
  return of.reduce<string[][]>((found, each) => found.flatMap((set) => [set, [...set, each]]), [[]]);
}
