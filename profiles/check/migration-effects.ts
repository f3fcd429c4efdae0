import { isObject, type JsonObject } from '../../src/json.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import type { Part } from '../deployment/part.ts';
import type { Effect } from './finding.ts';
import type { System } from './system.ts';

interface Circumstances {
  part: Part;
  system: System;
}

interface MigrationEffect {
  effect: Effect;
  names: readonly string[];
  reason: string;
}

const WEB_ASSEMBLY = 'experimental.containerEngine.webAssembly.enabled';
const STORAGE_DRIVER = 'containerEngine.mobyStorageDriver';
const TUNNEL = 'experimental.virtualMachine.networkingTunnel';

/** What the steps to the version of a release add to an older profile that does not say it (settings facts, 1.3). */
export function additions({ part, system }: Circumstances, settings: JsonObject): MigrationEffect[] {
  const version = Number(settings.version);
  const { settingsVersion } = system.release;
  const passes = (step: number) => version <= step && settingsVersion > step;
  const found: MigrationEffect[] = [];
  const add = (path: string, reason: string) => found.push({ effect: 'changed', names: path.split('.'), reason });
  if (part === 'locked' && passes(10) && leafAt(settings, WEB_ASSEMBLY) === undefined) {
    add(WEB_ASSEMBLY, 'it is locked to false by a profile of version 10 or lower that does not set it');
  }
  // The step after the next takes it away again.
  if (passes(12) && settingsVersion === 13 && leafAt(settings, TUNNEL) !== true) {
    add(TUNNEL, 'it becomes true with a profile of version 12 or lower, whatever that says');
  }
  if (part === 'defaults' && passes(16) && leafAt(settings, STORAGE_DRIVER) === undefined) {
    add(STORAGE_DRIVER, 'it becomes "auto" with a profile of version 16 or lower that does not set it');
  }
  return found;
}

/** What the steps make of values, beyond moving them. */
export function replacements({ system }: Circumstances, settings: JsonObject): MigrationEffect[] {
  const version = Number(settings.version);
  const { settingsVersion } = system.release;
  if (version > 7 || settingsVersion < 7) return [];
  const found: MigrationEffect[] = [];
  for (const path of ['application.pathManagementStrategy', 'pathManagementStrategy']) {
    if (leafAt(settings, path) !== 'notset') continue;
    const strategy = system.platform === 'win32' ? 'manual' : 'rcfiles';
    found.push({ effect: 'changed', names: path.split('.'), reason: `"notset" becomes "${strategy}"` });
  }
  const extensions = version <= 6 ? leafAt(settings, 'extensions') : undefined;
  if (isObject(extensions)) found.push(...Object.entries(extensions).flatMap(withPort));
  return found;
}

/** Every release up to the newest splits a reference at its first colon (settings facts, 3.7). */
function withPort([reference, wanted]: [string, unknown]): MigrationEffect[] {
  const colon = reference.indexOf(':');
  if (!wanted || colon === -1 || colon > reference.lastIndexOf('/')) return [];
  const reason = 'the migration takes the port of the registry for the tag of the image';
  return [{ effect: 'refused', names: ['extensions', reference], reason }];
}
