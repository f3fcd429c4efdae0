import { findProgram, programPath } from '../../../os/program.ts';
import { platformText } from '../../../settings/field.ts';
import type { SettingPath } from '../../../settings/settings.gen.ts';
import type { Probe, Support, SupportMatrix } from '../../driver.ts';
import { ENFORCED, engineSupport, K3S_SUPPORT, unsupported } from '../shared/engine-support.ts';
import { DISK_MOST_BYTES, GIB } from './live/facts.ts';
import type { HostFacts } from './mounts/host-facts.ts';
import { MOUNT_TYPES, MOUNTERS } from './mounts/mount-types.ts';

type MountSupport = Readonly<
  Record<Extract<SettingPath, 'virtualMachine.mount.type' | `experimental.virtualMachine.mount.${string}`>, Support>
>;

const OPTION: Support = { level: 'enforced' };

/** Support on a host with every dependency. */
const MOUNT_SUPPORT: MountSupport = {
  'virtualMachine.mount.type': {
    level: 'enforced',
    reason: 'each type has a requirement on this host: sftp-server, a guest image with 9p, or virtiofsd and root',
  },
  'experimental.virtualMachine.mount.9p.securityModel': {
    level: 'enforced',
    reason: 'passthrough needs root',
  },
  'experimental.virtualMachine.mount.9p.protocolVersion': {
    level: 'enforced',
    except: ['9p2000'],
    reason: 'QEMU supports 9p2000.u and 9p2000.L',
  },
  'experimental.virtualMachine.mount.9p.msizeInKib': OPTION,
  'experimental.virtualMachine.mount.9p.cacheMode': OPTION,
};

/** Pure: support on this host. */
export function mountSupport(facts: HostFacts): MountSupport {
  const obstacles = MOUNT_TYPES.flatMap((type) => {
    const reason = MOUNTERS[type].obstacle(facts);
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
            reason: 'passthrough needs root, because QEMU then changes the owner of files',
          },
        }),
  };
}

const RESTART_REASON = 'and a plan shows when that takes a restart';
const MEMORY = `it changes while the machine runs, ${RESTART_REASON}`;

const NOT_YET = 'this release does not do it';

/** What the qemu driver supports, per setting. The type requires every setting. */
export const QEMU_SUPPORT: SupportMatrix = {
  ...engineSupport('qemu'),
  ...K3S_SUPPORT,
  'application.adminAccess': {
    level: 'enforced',
    reason:
      'it opens ports that listen on all addresses of the machine on all addresses of this computer, not only on 127.0.0.1',
  },
  'virtualMachine.memoryInGB': { level: 'enforced', partlyLive: true, reason: MEMORY },
  'virtualMachine.numberCPUs': {
    level: 'enforced',
    partlyLive: true,
    reason: `more are added while the machine runs, ${RESTART_REASON}`,
  },
  'virtualMachine.type': { level: 'enforced', except: ['vz'], reason: 'the machine runs in QEMU' },
  'virtualMachine.useRosetta': unsupported('it exists on macOS only', false),
  ...MOUNT_SUPPORT,
  'experimental.virtualMachine.diskSize': {
    level: 'enforced',
    most: DISK_MOST_BYTES,
    partlyLive: true,
    reason: 'a disk can have up to 8 TiB, the limit for growing its file system while in use; it never shrinks',
  },
  'experimental.virtualMachine.sshPortForwarder': ENFORCED,
  'machine.mounts': {
    level: 'enforced',
    reason:
      'directories change while the machine runs with reverse-sshfs, and with a restart with the other mount types',
  },
  'machine.hostPorts': unsupported(NOT_YET),
  'machine.pauseAfterMinutes': unsupported(NOT_YET, 0),
};

/** Pure: QEMU cannot start with more memory than the host has; without this check that fails only after everything was stopped. */
export function memorySupport(hostBytes: number): { 'virtualMachine.memoryInGB': Support } {
  const most = Math.floor(hostBytes / GIB);
  const reason = `this computer has ${most} GiB of memory; within that, ${MEMORY}`;
  return { 'virtualMachine.memoryInGB': { level: 'enforced', most, partlyLive: true, reason } };
}

/** Facts that decide whether a machine can start here. */
export interface QemuFacts {
  platform: NodeJS.Platform;
  arch: string;
  missingPrograms: readonly string[];
  /** Guest images in the store of this home. */
  images: number;
}

const PROGRAMS = ['qemu-system-x86_64', 'qemu-img', 'ssh', 'ssh-keygen'];
/** Includes sftp-server, for the default mount type. */
const INSTALL = 'apt-get install --no-install-recommends qemu-system-x86 qemu-utils openssh-client openssh-sftp-server';

/** Pure: the verdict on these facts, the cheapest fix first. */
export function qemuVerdict({ platform, arch, missingPrograms, images }: QemuFacts): Probe {
  if (platform !== 'linux' || arch !== 'x64') {
    return {
      usable: false,
      reason: `needs Linux on x86_64, and this is ${platformText(platform)} on ${arch}`,
      fix: 'run rdctl on Linux on x86_64',
    };
  }
  if (missingPrograms.length > 0) {
    return { usable: false, reason: `not installed: ${missingPrograms.join(', ')}`, fix: INSTALL };
  }
  if (images === 0) {
    const fix = 'rdctl image build, or rdctl image fetch URL --sha256 SUM';
    return { usable: false, reason: 'there is no guest image', fix };
  }
  return { usable: true, detail: 'QEMU and a guest image' };
}

export async function qemuFacts(env: Readonly<Record<string, string | undefined>>, images: number): Promise<QemuFacts> {
  const path = programPath(env.PATH);
  const found = await Promise.all(PROGRAMS.map((name) => findProgram(name, path)));
  return {
    platform: process.platform,
    arch: process.arch,
    missingPrograms: PROGRAMS.filter((_, index) => found[index] === undefined),
    images,
  };
}
