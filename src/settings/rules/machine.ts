import type { Problem } from '../issue.ts';
import { conflict, type Rule, type RuleInput } from './rule.ts';

/** `vz` requires a recent macOS; each type supports some mount types only. */
export const machineType: Rule = (input) => {
  const { field, desired, changed, context } = input;
  const setting = `Setting ${field.path} to ${JSON.stringify(desired)}`;
  if (desired === 'vz' && changed && context.osVersion !== undefined) {
    if (context.arch === 'arm64' && isOlder(context.osVersion, 13, 3)) {
      return conflict(`${setting} on ARM requires macOS 13.3 (Ventura) or later.`);
    }
    if (isOlder(context.osVersion, 13, 0))
      return conflict(`${setting} on Intel requires macOS 13.0 (Ventura) or later.`);
  }
  const mount = input.result('virtualMachine.mount.type');
  // Other platforms have one type, so only the mount type is checked.
  if (context.platform !== 'darwin' || !takesPart(input)) return [];
  if (desired === 'vz' && mount === '9p') {
    return conflict(`${setting} requires that virtual-machine.mount.type is "reverse-sshfs" or "virtiofs".`, false);
  }
  if (desired === 'qemu' && mount === 'virtiofs') {
    return conflict(`${setting} requires that virtual-machine.mount.type is "reverse-sshfs" or "9p".`, false);
  }
  return [];
};

/** `9p` requires QEMU; `virtiofs` requires the Virtualization framework on macOS and QEMU on Linux. */
export const mountType: Rule = (input) => {
  const { field, desired, context } = input;
  const needed =
    desired === '9p' ? 'qemu' : desired === 'virtiofs' ? (context.platform === 'darwin' ? 'vz' : 'qemu') : undefined;
  if (needed === undefined || !takesPart(input) || input.result('virtualMachine.type') === needed) return [];
  return conflict(`Setting ${field.path} to "${desired}" requires that virtual-machine.type is "${needed}".`);
};

export const rosetta: Rule = ({ field, desired, changed, result, context }) => {
  if (desired !== true || !changed) return [];
  if (result('virtualMachine.type') !== 'vz') {
    return conflict(`Setting ${field.path} can only be enabled when virtual-machine.type is "vz".`);
  }
  if (context.arch !== 'arm64') return conflict(`Setting ${field.path} can only be enabled on aarch64 systems.`);
  return [];
};

/** The 9p options cannot change while nothing is mounted with it; checked before the value itself. */
export function ninePOption({ field, changed, result }: RuleInput): Problem[] {
  if (!changed || result('virtualMachine.mount.type') === '9p') return [];
  return conflict(`Setting ${field.path} can only be changed when virtualMachine.mount.type is "9p".`);
}

function takesPart({ changes }: RuleInput): boolean {
  return changes('virtualMachine.type') || changes('virtualMachine.mount.type');
}

function isOlder(version: string, major: number, minor: number): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map((part) => Number.parseInt(part, 10) || 0);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}
