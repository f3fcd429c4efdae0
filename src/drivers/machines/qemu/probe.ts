import { findProgram, programPath } from '../../../os/program.ts';
import { platformText } from '../../../settings/field.ts';
import type { Probe } from '../../driver.ts';

/** Facts that decide whether a machine can start here. */
export interface QemuFacts {
  platform: NodeJS.Platform;
  arch: string;
  missingPrograms: readonly string[];
  /** Guest images in the store of this home. */
  images: number;
}

const PROGRAMS = ['qemu-system-x86_64', 'qemu-img', 'ssh', 'ssh-keygen'];
/** For the default size of the home directory. */
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
