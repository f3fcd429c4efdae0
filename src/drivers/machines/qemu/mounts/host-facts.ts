import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { findProgram, programPath } from '../../../../os/program.ts';

/** What this host has for sharing directories. */
export interface HostFacts {
  /** Absolute paths; undefined for missing programs. */
  sftpServer: string | undefined;
  virtiofsd: { path: string; dialect: 'qemu' | 'rust' } | undefined;
  isRoot: boolean;
  /** Optional features of the guest images. */
  features: readonly string[];
}

/** A helper outside `PATH`; each distribution has its own location. */
const SFTP_SERVERS = [
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/libexec/sftp-server',
  '/usr/lib/ssh/sftp-server',
];
/** The one shipped with QEMU up to 7.2, and its successor. */
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

/** Pure: features that at least one image has. */
export function featuresOf(images: readonly { features?: readonly string[] }[]): string[] {
  return [...new Set(images.flatMap(({ features = [] }) => features))];
}
