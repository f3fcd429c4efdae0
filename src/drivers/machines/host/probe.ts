import { access, readFile } from 'node:fs/promises';
import { findProgram, programPath } from '../../../os/program.ts';
import { platformText } from '../../../settings/field.ts';
import type { Probe } from '../../driver.ts';

/** Facts that decide whether the host can be the machine. */
export interface HostFacts {
  platform: NodeJS.Platform;
  root: boolean;
  missingPrograms: readonly string[];
  /** The process may change links and mounts; root in an unprivileged container may not. */
  capable: boolean;
  controlGroups: boolean;
}

const PROGRAMS = ['dockerd', 'containerd', 'ctr', 'runc', 'ip', 'iptables', 'umount', 'nsenter', 'unshare'];
const INSTALL = 'apt-get install --no-install-recommends docker.io containerd iptables iproute2';

/** Pure: the verdict on these facts, the cheapest fix first. */
export function hostVerdict({ platform, root, missingPrograms, capable, controlGroups }: HostFacts): Probe {
  if (platform !== 'linux') {
    return {
      usable: false,
      reason: `needs Linux, and this is ${platformText(platform)}`,
      fix: 'run rdctl on Linux',
    };
  }
  const missing = missingPrograms.length > 0 ? `not installed: ${missingPrograms.join(', ')}` : undefined;
  if (!root) {
    const reason = 'needs root for networks and control groups';
    const fix = missing ? `sudo ${INSTALL}; then run rdctl with sudo` : 'run rdctl with sudo';
    return { usable: false, reason: missing ? `${reason}, and ${missing}` : reason, fix };
  }
  if (missing) return { usable: false, reason: missing, fix: INSTALL };
  if (!capable) {
    return {
      usable: false,
      reason:
        'root may not change networks or mounts here (no CAP_NET_ADMIN or CAP_SYS_ADMIN), as in a plain container',
      fix: 'run it outside the container, or give the container those capabilities',
    };
  }
  if (!controlGroups) {
    return {
      usable: false,
      reason: 'no control groups are mounted at /sys/fs/cgroup',
      fix: 'mount -t cgroup2 none /sys/fs/cgroup',
    };
  }
  return { usable: true, detail: 'root on Linux with dockerd and containerd' };
}

export async function hostFacts(env: Readonly<Record<string, string | undefined>>): Promise<HostFacts> {
  const path = programPath(env.PATH);
  const found = await Promise.all(PROGRAMS.map((name) => findProgram(name, path)));
  return {
    platform: process.platform,
    root: process.getuid?.() === 0,
    missingPrograms: PROGRAMS.filter((_, index) => found[index] === undefined),
    capable: await hasCapabilities(),
    controlGroups: (await exists('/sys/fs/cgroup/cgroup.controllers')) || (await exists('/sys/fs/cgroup/devices')),
  };
}

/** Bits of the effective set in `/proc/self/status`. */
const NET_ADMIN = 12n;
const SYS_ADMIN = 21n;

async function hasCapabilities(): Promise<boolean> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '');
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  return [NET_ADMIN, SYS_ADMIN].every((bit) => ((effective >> bit) & 1n) === 1n);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
