import { hasShape, isObject } from '../../../json.ts';
import type { MachineSpec } from '../../driver.ts';

const SAMPLE: MachineSpec = {
  memoryGiB: 0,
  cpus: 0,
  diskBytes: 0,
  type: '',
  useRosetta: false,
  mount: { type: '', securityModel: '', protocolVersion: '', msizeInKib: 0, cacheMode: '' },
  sshPortForwarder: false,
  adminAccess: false,
  mounts: {},
  hostPorts: [],
  pauseAfterMinutes: 0,
};

/** Parses the spec in a machine record; undefined when it is damaged. Members that older releases do not write have their defaults. */
export function parseMachineSpec(value: unknown): MachineSpec | undefined {
  const { mounts, hostPorts, pauseAfterMinutes } = SAMPLE;
  const spec = isObject(value) ? { mounts, hostPorts, pauseAfterMinutes, ...value } : value;
  return hasShape(spec, SAMPLE) ? spec : undefined;
}
