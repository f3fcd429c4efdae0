import type { JsonValue } from '../json.ts';
import type { Platform } from './field.ts';
import { settingAt } from './fields.ts';
import type { SettingPath } from './settings.gen.ts';

/** A minor release of Rancher Desktop: patch releases never changed the shape of settings. */
export interface Release {
  /** `1.20` */
  name: string;
  /** The settings version that it writes. */
  settingsVersion: number;
}

/** Releases whose settings have sections, oldest first. */
export const RELEASES: readonly Release[] = [
  { name: '1.8', settingsVersion: 6 },
  { name: '1.9', settingsVersion: 8 },
  { name: '1.10', settingsVersion: 9 },
  { name: '1.11', settingsVersion: 10 },
  { name: '1.12', settingsVersion: 10 },
  { name: '1.13', settingsVersion: 11 },
  { name: '1.14', settingsVersion: 11 },
  { name: '1.15', settingsVersion: 13 },
  { name: '1.16', settingsVersion: 14 },
  { name: '1.17', settingsVersion: 14 },
  { name: '1.18', settingsVersion: 14 },
  { name: '1.19', settingsVersion: 15 },
  { name: '1.20', settingsVersion: 16 },
  { name: '1.21', settingsVersion: 16 },
  { name: '1.22', settingsVersion: 17 },
  { name: '1.23', settingsVersion: 18 },
  { name: '1.24', settingsVersion: 19 },
];

/** Settings added within a settings version, or first written by a later one. */
const LATER_SETTINGS: Readonly<Partial<Record<SettingPath, string>>> = {
  'containers.showAll': '1.12',
  'containers.namespace': '1.12',
  'experimental.kubernetes.options.spinkube': '1.14',
  'experimental.virtualMachine.sshPortForwarder': '1.20',
  'experimental.virtualMachine.diskSize': '1.21',
  'diagnostics.connectivity.interval': '1.21',
  'diagnostics.connectivity.timeout': '1.21',
};

/** Former defaults that a rule depends on, valid in releases before `until`. */
const EARLIER_DEFAULTS: Readonly<Partial<Record<SettingPath, { value: JsonValue; until: string }>>> = {
  'application.adminAccess': { value: true, until: '1.9' },
  'application.pathManagementStrategy': { value: 'notset', until: '1.9' },
  'containerEngine.name': { value: 'containerd', until: '1.9' },
  'virtualMachine.type': { value: 'qemu', until: '1.20' },
  'virtualMachine.mount.type': { value: 'reverse-sshfs', until: '1.20' },
};

/** Returns the index of a release in `RELEASES`, or -1 if unknown. */
export function releaseIndex(name: string): number {
  return RELEASES.findIndex((release) => release.name === name);
}

/** Returns the index in `RELEASES` of the first release with a setting at its current path. */
export function firstReleaseWith(path: SettingPath): number {
  const later = LATER_SETTINGS[path];
  if (later !== undefined) return releaseIndex(later);
  const since = settingAt(path)?.since ?? Number.POSITIVE_INFINITY;
  return RELEASES.findIndex(({ settingsVersion }) => settingsVersion >= since);
}

/** Returns a setting's default in a release, on the newest systems of a platform. */
export function defaultIn(path: SettingPath, release: Release, platform: Platform): JsonValue | undefined {
  const earlier = EARLIER_DEFAULTS[path];
  if (earlier && RELEASES.indexOf(release) < releaseIndex(earlier.until)) return earlier.value;
  const field = settingAt(path);
  return field?.defaultByPlatform?.[platform] ?? field?.default;
}
