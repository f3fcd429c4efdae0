import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { findProgram, programPath } from '../../../../process/program.ts';

/** What this host has for showing its directories. */
export interface HostFacts {
  /** Absolute paths; undefined where there is none. */
  sftpServer: string | undefined;
  virtiofsd: { path: string; dialect: 'qemu' | 'rust' } | undefined;
  isRoot: boolean;
  /** What the guest images have that not every image has. */
  features: readonly string[];
}

/** It is no program for people, so that it is not on their path; every family of systems has its own place. */
const SFTP_SERVERS = [
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/libexec/sftp-server',
  '/usr/lib/ssh/sftp-server',
];
/** The one that came with QEMU up to 7.2, and the one that followed it. */
const VIRTIOFSD_OF_QEMU = ['/usr/lib/qemu/virtiofsd'];
const VIRTIOFSD = ['/usr/libexec/virtiofsd', '/usr/lib/virtiofsd'];

export async function hostFacts(path: string | undefined, features: readonly string[]): Promise<HostFacts> {
  const [sftpServer, rust, ofQemu] = await Promise.all([
    firstOf(SFTP_SERVERS, 'sftp-server', path),
    firstOf(VIRTIOFSD, 'virtiofsd', path),
    firstOf(VIRTIOFSD_OF_QEMU, undefined, path),
  ]);
  const virtiofsd = rust
    ? ({ path: rust, dialect: 'rust' } as const)
    : ofQemu
      ? ({ path: ofQemu, dialect: 'qemu' } as const)
      : undefined;
  return { sftpServer, virtiofsd, isRoot: process.getuid?.() === 0, features };
}

async function firstOf(places: readonly string[], name: string | undefined, path: string | undefined) {
  for (const place of places) {
    const found = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return place;
  }
  return name === undefined ? undefined : findProgram(name, programPath(path));
}

/** Pure: what one or another of the images has. */
export function featuresOf(images: readonly { features?: readonly string[] }[]): string[] {
  return [...new Set(images.flatMap(({ features = [] }) => features))];
}
