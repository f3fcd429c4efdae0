import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/json.ts';
import { setLeaf } from '../../../src/settings/leaf-paths.ts';
import type { SettingPath } from '../../../src/settings/settings.gen.ts';

/** A document of kind Profile, as far as these sequences generate it. */
export interface Profile {
  settings: JsonObject;
  state?: 'started' | 'stopped';
  prune?: string[];
  portForwards?: JsonObject[];
}

/** What someone other than the service does to what runs. */
export type Misfortune =
  | 'machine ends'
  | 'machine breaks'
  | 'engine ends'
  | 'engine hangs'
  | 'cluster ends'
  | 'cluster hangs';

export interface Apply {
  do: 'apply';
  profile: Profile;
  /** `rdctl plan --out-file`, and then that plan. */
  saved: boolean;
  /** `--allow-reset` */
  agreed: boolean;
  /** The tool is killed after this share of the usual duration of an apply. */
  killedAt?: number;
  /** After the kill, the service is waited for before anything is requested. */
  waits: boolean;
}

export type Step =
  | Apply
  | { do: 'set'; values: Partial<Record<SettingPath, JsonValue>> }
  | { do: 'shutdown' }
  | { do: 'start' }
  | { do: 'kill the service' }
  | { do: 'reboot' }
  /** Someone starts the existing containers. */
  | { do: 'run containers' }
  /** `alone`: the service is killed first, so that nothing observes it. Otherwise the next plan comes at once, or after recovery. */
  | { do: 'misfortune'; what: Misfortune; alone: boolean; waits: boolean };

type Values = [SettingPath, JsonValue][];

/** Values in the form in which the service returns them. */
const VALUES: readonly fc.Arbitrary<Values>[] = [
  one('containerEngine.name', fc.constantFrom('moby', 'containerd')),
  one('kubernetes.enabled', fc.boolean()),
  one('kubernetes.version', fc.constantFrom('1.32.7', '1.31.5', '1.30.2')),
  one('kubernetes.options.traefik', fc.boolean()),
  one('virtualMachine.memoryInGB', fc.integer({ min: 2, max: 4 })),
  one('application.debug', fc.boolean()),
  one('experimental.virtualMachine.sshPortForwarder', fc.boolean()),
  one('containerEngine.allowedImages.enabled', fc.boolean()),
  one('containerEngine.allowedImages.patterns', fc.constantFrom([], ['debian'], ['debian', 'ghcr.io/team/'])),
  one('containerEngine.mobyStorageDriver', fc.constantFrom('auto', 'snapshotter', 'classic')),
  one('images.namespace', fc.constantFrom('a', 'b')),
  one(
    'diagnostics.mutedChecks',
    fc.dictionary(fc.constantFrom('ONE', 'TWO', 'THREE'), fc.option(fc.boolean()), { minKeys: 1, maxKeys: 2 }),
  ),
  one(
    'application.extensions.installed',
    fc
      .record(
        {
          'simulated/hello': fc.constantFrom('1.0.0', '1.1.0', null),
          'simulated/panel': fc.constantFrom('v1', 'v2', null),
        },
        { requiredKeys: [] },
      )
      .filter((map) => Object.keys(map).length > 0),
  ),
];

function one(path: SettingPath, value: fc.Arbitrary<JsonValue>): fc.Arbitrary<Values> {
  return value.map((given) => [[path, given]]);
}

function settingsOf(values: Values): JsonObject {
  const settings: JsonObject = { version: 19 };
  for (const [path, value] of values) setLeaf(settings, path, value);
  return settings;
}

function profileArbitrary(ports: readonly number[]): fc.Arbitrary<Profile> {
  const settings = fc
    .subarray([...VALUES], { maxLength: 4 })
    .chain((some) => fc.tuple(...some).map((values) => settingsOf(values.flat())));
  const forward = fc.record({
    namespace: fc.constant('default'),
    service: fc.constant('web'),
    k8sPort: fc.constantFrom(80, 'http'),
    hostPort: fc.constantFrom<JsonValue>(...ports, null),
  });
  const optional = fc.record(
    {
      state: fc.constantFrom<'started' | 'stopped'>('started', 'started', 'started', 'stopped'),
      prune: fc.subarray(['diagnostics.mutedChecks', 'application.extensions.installed', 'portForwards']),
      portForwards: fc.uniqueArray(forward, {
        maxLength: 2,
        // Two on one port conflict.
        comparator: (one, other) =>
          one.k8sPort === other.k8sPort || (one.hostPort !== null && one.hostPort === other.hostPort),
      }),
    },
    { requiredKeys: [] },
  );
  return fc.tuple(settings, optional).map(([given, rest]) => ({ settings: given, ...rest }));
}

function applyArbitrary(ports: readonly number[]): fc.Arbitrary<Step> {
  return fc.record({
    do: fc.constant('apply' as const),
    profile: profileArbitrary(ports),
    saved: fc.integer({ min: 0, max: 3 }).map((of) => of === 3),
    agreed: fc.boolean(),
    killedAt: fc.option(
      fc.integer({ min: 0, max: 110 }).map((percent) => percent / 100),
      { nil: undefined, freq: 1 },
    ),
    waits: fc.boolean(),
  }) as fc.Arbitrary<Apply>;
}

export function stepArbitrary(ports: readonly number[]): fc.Arbitrary<Step> {
  const word = <S extends Step['do']>(name: S) => fc.constant({ do: name } as Step);
  return fc.oneof(
    { weight: 10, arbitrary: applyArbitrary(ports) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('set' as const),
        values: fc.record({
          'images.namespace': fc.constantFrom('c', 'd'),
          'kubernetes.enabled': fc.boolean(),
          'containerEngine.name': fc.constantFrom('moby', 'containerd'),
        }),
      }),
    },
    { weight: 2, arbitrary: word('shutdown') },
    { weight: 2, arbitrary: word('start') },
    { weight: 2, arbitrary: word('kill the service') },
    { weight: 1, arbitrary: word('reboot') },
    { weight: 2, arbitrary: word('run containers') },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('misfortune' as const),
        what: fc.constantFrom<Misfortune>(
          'machine ends',
          'machine breaks',
          'engine ends',
          'engine hangs',
          'cluster ends',
          'cluster hangs',
        ),
        alone: fc.boolean(),
        waits: fc.boolean(),
      }),
    },
  );
}
