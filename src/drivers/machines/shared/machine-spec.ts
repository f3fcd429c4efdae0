import { hasShape } from '../../../json.ts';
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

/** The spec in a machine record; undefined when it is damaged. */
export function parseMachineSpec(value: unknown): MachineSpec | undefined {
  return hasShape(value, SAMPLE) ? value : undefined;
}
