import { isObject, type JsonValue } from '../../../json.ts';
import type { MachineSpec } from '../../driver.ts';

/** Reads the spec in a machine record; fields missing in older releases are 0, empty or false. Undefined when it is invalid. */
export function parseMachineSpec(value: JsonValue | undefined): MachineSpec | undefined {
  if (!isObject(value) || !isObject(value.mount)) return undefined;
  const { mount } = value;
  return {
    memoryGiB: number(value.memoryGiB),
    cpus: number(value.cpus),
    diskBytes: number(value.diskBytes),
    type: text(value.type),
    useRosetta: value.useRosetta === true,
    mount: {
      type: text(mount.type),
      securityModel: text(mount.securityModel),
      protocolVersion: text(mount.protocolVersion),
      msizeInKib: number(mount.msizeInKib),
      cacheMode: text(mount.cacheMode),
    },
    sshPortForwarder: value.sshPortForwarder === true,
    adminAccess: value.adminAccess === true,
  };
}

function number(value: JsonValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
