import { RdError } from '../../../errors.ts';
import { findProgram, programPath } from '../../../os/program.ts';
import { platformText } from '../../../settings/field.ts';
import type { SettingPath } from '../../../settings/settings.gen.ts';
import type { Probe, Support, SupportMatrix } from '../../driver.ts';
import { ARCHITECTURES, type Architecture, guestArchitecture } from '../../guest-images/architecture.ts';
import { ENFORCED, engineSupport, K3S_SUPPORT, unsupported } from '../shared/engine-support.ts';
import { installLine } from '../shared/install-line.ts';
import type { QemuHost } from './arguments.ts';
import { DISK_MOST_BYTES, GIB } from './live/facts.ts';
import { GUEST_SYSTEM_PATHS } from './mounts/directories.ts';
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

/** Returns the support on this host. Pure. */
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

const UNSEEN = 'other systems do not show who connects to a paused machine';

/** The qemu driver's support of each setting. The type requires every setting. */
export const QEMU_SUPPORT = {
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
    reserved: GUEST_SYSTEM_PATHS,
    reason:
      'directories change while the machine runs with reverse-sshfs, and with a restart with the other mount types',
  },
  'machine.hostPorts': ENFORCED,
  'machine.pauseAfterMinutes': { level: 'enforced', reason: `on Linux; ${UNSEEN}` },
} as const satisfies SupportMatrix;

/**
 * Returns the support of memory sizes: QEMU cannot start with more memory than the host has, and without this check that fails only after everything
 * was stopped. Pure.
 */
export function memorySupport(hostBytes: number): { 'virtualMachine.memoryInGB': Support } {
  const most = Math.floor(hostBytes / GIB);
  const reason = `this computer has ${most} GiB of memory; within that, ${MEMORY}`;
  return { 'virtualMachine.memoryInGB': { level: 'enforced', most, partlyLive: true, reason } };
}

/** Returns the support of pauses on a platform. Pure. */
export function pauseSupport(platform: NodeJS.Platform): { 'machine.pauseAfterMinutes': Support } {
  const setting = 'machine.pauseAfterMinutes';
  return { [setting]: platform === 'linux' ? QEMU_SUPPORT[setting] : unsupported(`it needs Linux: ${UNSEEN}`, 0) };
}

/**
 * Returns this computer as a host.
 * @throws RdError `ERR_DRIVER_TERMINAL` if no guest runs here.
 */
export function ownHost(): QemuHost {
  const { platform, arch } = process;
  const architecture = guestArchitecture(arch);
  if (architecture !== undefined) return { platform, architecture };
  throw new RdError('ERR_DRIVER_TERMINAL', `the qemu driver has no machines for ${arch}`, {
    advice: 'Run rdctl on a computer with x86_64 or arm64.',
  });
}

/** Facts that decide whether a machine can start here. */
export interface QemuFacts {
  platform: NodeJS.Platform;
  /** `process.arch` */
  arch: string;
  root: boolean;
  missingPrograms: readonly string[];
  /** Missing programs of those that build a guest image. */
  missingBuilders: readonly string[];
  /** Architectures of the guest images in the store of this home. */
  images: readonly string[];
}

/** Returns the packages to install: QEMU, sftp-server for the default mount type, and the programs that confine them. */
function packagesFor({ package: qemu }: { package: string }): string[] {
  return [qemu, 'qemu-utils', 'openssh-client', 'openssh-sftp-server', 'bubblewrap'];
}

/** Packages to build an image; uidmap is for users other than root. */
const BUILD_PACKAGES = ['mmdebstrap', 'uidmap', 'e2fsprogs', 'ca-certificates'];
const BUILD = 'rdctl image build';

/** Returns the verdict on these facts, the cheapest fix first. Pure. */
export function qemuVerdict(facts: QemuFacts): Probe {
  const { platform, arch, missingPrograms, images } = facts;
  const architecture = guestArchitecture(arch);
  if ((platform !== 'linux' && platform !== 'darwin') || architecture === undefined) {
    return {
      usable: false,
      reason: `needs Linux or macOS on x86_64 or arm64, and this is ${platformText(platform)} on ${arch}`,
      fix: 'run rdctl on Linux or macOS',
    };
  }
  const hasImage = images.includes(architecture);
  if (missingPrograms.length === 0 && hasImage) return { usable: true, detail: 'QEMU and a guest image' };
  const noImage =
    images.length === 0
      ? 'there is no guest image'
      : `there is no guest image for ${architecture}, only for ${[...new Set(images)].join(', ')}`;
  const reason = missingPrograms.length > 0 ? `not installed: ${missingPrograms.join(', ')}` : noImage;
  if (platform === 'linux')
    return { usable: false, reason, fix: linuxFix(facts, architecture, hasImage), copyable: true };
  // Images are built on Linux.
  const fetch = hasImage ? [] : ['rdctl image fetch URL --sha256 SUM'];
  const install = missingPrograms.length > 0 ? ['brew install qemu'] : [];
  return { usable: false, reason, fix: [...install, ...fetch].join(' && ') };
}

function linuxFix(
  { root, missingPrograms, missingBuilders }: QemuFacts,
  architecture: Architecture,
  hasImage: boolean,
): string {
  const packages = [
    ...(missingPrograms.length > 0 ? packagesFor(ARCHITECTURES[architecture].qemu) : []),
    ...(missingBuilders.length > 0 && !hasImage ? BUILD_PACKAGES : []),
  ];
  return [...(packages.length > 0 ? [installLine(packages, root)] : []), ...(hasImage ? [] : [BUILD])].join(' && ');
}

export async function qemuFacts(
  env: Readonly<Record<string, string | undefined>>,
  images: readonly string[],
): Promise<QemuFacts> {
  const { platform, arch } = process;
  const path = programPath(env.PATH);
  const root = process.getuid?.() === 0;
  const { qemu } = ARCHITECTURES[guestArchitecture(arch) ?? 'x86_64'];
  const missing = async (programs: readonly string[]) => {
    const found = await Promise.all(programs.map((name) => findProgram(name, path)));
    return programs.filter((_, index) => found[index] === undefined);
  };
  const [missingPrograms, missingBuilders] = await Promise.all([
    missing([qemu.program, 'qemu-img', 'ssh', 'ssh-keygen']),
    missing(['mmdebstrap', 'mke2fs', ...(root ? [] : ['newuidmap'])]),
  ]);
  return { platform, arch, root, missingPrograms, missingBuilders, images };
}
