import type { SettingPath } from '../../../../settings/settings.gen.ts';
import type { Support } from '../../../driver.ts';
import type { HostFacts } from './host-facts.ts';
import { MOUNT_TYPES } from './way.ts';
import { MOUNT_WAYS } from './ways.ts';

type MountSupport = Readonly<
  Record<Extract<SettingPath, 'virtualMachine.mount.type' | `experimental.virtualMachine.mount.${string}`>, Support>
>;

const OPTION: Support = { level: 'enforced' };

/** Support on a host with every dependency. */
export const MOUNT_SUPPORT: MountSupport = {
  'virtualMachine.mount.type': {
    level: 'enforced',
    reason: 'each needs something of this host: sftp-server, a guest image with 9p, or virtiofsd and root',
  },
  'experimental.virtualMachine.mount.9p.securityModel': {
    level: 'enforced',
    reason: 'passthrough needs root',
  },
  'experimental.virtualMachine.mount.9p.protocolVersion': {
    level: 'enforced',
    except: ['9p2000'],
    reason: 'QEMU speaks 9p2000.u and 9p2000.L',
  },
  'experimental.virtualMachine.mount.9p.msizeInKib': OPTION,
  'experimental.virtualMachine.mount.9p.cacheMode': OPTION,
};

/** Pure: support on this host. */
export function mountSupport(facts: HostFacts): MountSupport {
  const obstacles = MOUNT_TYPES.flatMap((type) => {
    const reason = MOUNT_WAYS[type].obstacle(facts);
    return reason === undefined ? [] : [{ type, reason }];
  });
  return {
    ...MOUNT_SUPPORT,
    ...(obstacles.length === 0
      ? {}
      : {
          'virtualMachine.mount.type': {
            level: 'enforced',
            except: obstacles.map(({ type }) => type),
            reason: obstacles.map(({ reason }) => reason).join('; '),
          },
        }),
    ...(facts.isRoot
      ? {}
      : {
          'experimental.virtualMachine.mount.9p.securityModel': {
            level: 'enforced',
            except: ['passthrough'],
            reason: 'passthrough needs root, because QEMU gives files to other users with it',
          },
        }),
  };
}
