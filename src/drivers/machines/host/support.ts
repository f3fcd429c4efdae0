import type { SupportMatrix } from '../../driver.ts';
import { engineSupport, without, withoutCluster } from '../../engine-support.ts';

const NO_VM = 'there is no virtual machine, the host itself runs the containers';

/** What the host driver supports, per setting. The type requires every setting. */
export const HOST_SUPPORT: SupportMatrix = {
  ...engineSupport('host'),
  ...withoutCluster('this driver has no cluster'),
  'application.adminAccess': without(NO_VM, false),
  'virtualMachine.memoryInGB': without(NO_VM),
  'virtualMachine.numberCPUs': without(NO_VM),
  'virtualMachine.type': without(NO_VM),
  'virtualMachine.useRosetta': without(NO_VM, false),
  'virtualMachine.mount.type': without(NO_VM),
  'experimental.virtualMachine.diskSize': without(NO_VM),
  'experimental.virtualMachine.mount.9p.securityModel': without(NO_VM),
  'experimental.virtualMachine.mount.9p.protocolVersion': without(NO_VM),
  'experimental.virtualMachine.mount.9p.msizeInKib': without(NO_VM),
  'experimental.virtualMachine.mount.9p.cacheMode': without(NO_VM),
  'experimental.virtualMachine.sshPortForwarder': without(NO_VM),
};
