import type { SettingPath } from '../settings.gen.ts';
import { extensionPatterns, installedExtensions } from './extensions.ts';
import { kubernetesVersion } from './kubernetes.ts';
import { machineType, mountType, rosetta } from './machine.ts';
import { noproxyList } from './proxy.ts';
import type { Rule } from './rule.ts';
import { classicStore, diskSize, spinOperator } from './storage.ts';

/** Settings whose rule and lock are looked at even where the value is wrong by itself: all lines of them are listed, as scripts know it. */
export const RUNS_EVERY_RULE: ReadonlySet<SettingPath> = new Set([
  'application.extensions.installed',
  'containerEngine.mobyStorageDriver',
  'containerEngine.name',
  'experimental.containerEngine.webAssembly.enabled',
  'experimental.kubernetes.options.spinkube',
  'virtualMachine.mount.type',
  'virtualMachine.type',
]);

/** Rules that look beyond the type of a value. A setting without one has none. */
export const RULES: Readonly<Partial<Record<SettingPath, Rule>>> = {
  'application.extensions.allowed.list': extensionPatterns,
  'application.extensions.installed': installedExtensions,
  'containerEngine.mobyStorageDriver': classicStore(
    'Cannot switch to classic storage for moby when WebAssembly is enabled.',
  ),
  'containerEngine.name': classicStore(
    'Cannot switch to moby container engine with classic storage when WebAssembly is enabled.',
  ),
  'virtualMachine.type': machineType,
  'virtualMachine.useRosetta': rosetta,
  'virtualMachine.mount.type': mountType,
  'kubernetes.version': kubernetesVersion,
  'experimental.containerEngine.webAssembly.enabled': classicStore(
    'Cannot enable WebAssembly with classic storage for moby.',
  ),
  'experimental.kubernetes.options.spinkube': spinOperator,
  'experimental.virtualMachine.diskSize': diskSize,
  'experimental.virtualMachine.proxy.noproxy': noproxyList,
};
