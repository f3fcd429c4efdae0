import type { JsonValue } from '../json.ts';
import type { ProfileLayer, SettingLayers } from '../plan/layers.ts';
import { type Field, PLATFORM_NAMES } from '../settings/field.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import { equal } from '../settings/own.ts';
import type { ExplainedLayer } from './explain.ts';

/** The layers of one setting, lowest first; exactly one wins. */
export function layersOf(field: Field, layers: SettingLayers): ExplainedLayer[] {
  const { path } = field;
  const { builtIn, stored, settingsFile, defaultsProfile, lockedProfile } = layers;
  const locked = lockedProfile && leafAt(lockedProfile.settings, path);
  const kept = stored && leafAt(stored, path);
  const first = defaultsProfile && leafAt(defaultsProfile.settings, path);
  const wins =
    locked !== undefined
      ? 'locked'
      : kept !== undefined
        ? 'stored'
        : first !== undefined && !stored
          ? 'first'
          : 'default';
  return [
    {
      layer: 'built-in default',
      ...present(leafAt(builtIn, path)),
      source: 'schema',
      wins: wins === 'default',
      ...noted(defaultNote(field, layers)),
    },
    ...(defaultsProfile
      ? [
          profileLayer(
            'defaults profile',
            defaultsProfile,
            first,
            wins === 'first',
            first === undefined ? undefined : firstRunNote(layers),
          ),
        ]
      : []),
    {
      layer: 'stored',
      ...present(kept),
      source: settingsFile,
      wins: wins === 'stored',
      ...noted(storedNote(layers, kept, leafAt(builtIn, path))),
    },
    ...(lockedProfile ? [profileLayer('locked profile', lockedProfile, locked, wins === 'locked', undefined)] : []),
  ];
}

function profileLayer(
  layer: 'defaults profile' | 'locked profile',
  { source }: ProfileLayer,
  value: JsonValue | undefined,
  wins: boolean,
  note: string | undefined,
): ExplainedLayer {
  return { layer, ...present(value), source, wins, ...noted(note) };
}

function defaultNote(field: Field, { platform, builtIn, basis }: SettingLayers): string | undefined {
  const { path, defaultByPlatform, defaultFromKernel } = field;
  if (path === 'virtualMachine.memoryInGB' && basis !== 'application' && field.platforms.includes(platform)) {
    return 'a quarter of the memory of this computer, from 1 to 6 GiB, on a first run';
  }
  if (defaultByPlatform?.[platform] === undefined) return undefined;
  const own = equal(leafAt(builtIn, path), defaultByPlatform[platform]);
  const kernel = defaultFromKernel?.[platform];
  if (kernel === undefined) return `the default on ${PLATFORM_NAMES[platform]}`;
  return `the default on ${PLATFORM_NAMES[platform]} ${own ? 'with' : 'before'} kernel ${kernel}${own ? ' or later' : ''}`;
}

/** A defaults profile applies once, and the settings may predate it. */
function firstRunNote({ defaultsProfile, stored, firstRun, basis }: SettingLayers): string {
  if (basis === 'application') return 'counts on the first run of the application alone';
  if (!stored) return 'counts at the first start';
  if (!firstRun) return 'counts on a first run alone; how these settings began is not recorded';
  if (firstRun.defaults === defaultsProfile?.source) return `applied at the first run, ${firstRun.at}`;
  return `not applied: the settings began ${firstRun.at} ${firstRun.defaults === undefined ? 'without a defaults profile' : `with ${firstRun.defaults}`}`;
}

function storedNote(
  { stored, basis }: SettingLayers,
  value: JsonValue | undefined,
  usual: JsonValue | undefined,
): string | undefined {
  if (!stored) return 'nothing is stored before the first run';
  if (value === undefined) return basis === 'application' ? 'it does not have this setting' : 'not in the file';
  return equal(value, usual) ? 'same as the default' : undefined;
}

function present(value: JsonValue | undefined): { value?: JsonValue } {
  return value === undefined ? {} : { value };
}

function noted(note: string | undefined): { note?: string } {
  return note === undefined ? {} : { note };
}
