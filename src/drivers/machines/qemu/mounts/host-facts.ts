import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { findProgram, programPath } from '../../../../os/program.ts';

/** The host's facts for sharing directories. */
export interface HostFacts {
  /** Absolute paths; undefined for missing programs. */
  sftpServer: string | undefined;
  virtiofsd: { path: string; dialect: 'qemu' | 'rust' } | undefined;
  isRoot: boolean;
  /** Optional features of the guest images. */
  features: readonly string[];
}

/** Locations of sftp-server, which is not in `PATH` and differs by distribution. */
const SFTP_SERVERS = [
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/libexec/sftp-server',
  '/usr/lib/ssh/sftp-server',
];
/** The virtiofsd shipped with QEMU up to 7.2, and its successor. */
const QEMU_VIRTIOFSD = ['/usr/lib/qemu/virtiofsd'];
const VIRTIOFSD = ['/usr/libexec/virtiofsd', '/usr/lib/virtiofsd'];

export async function hostFacts(path: string | undefined, features: readonly string[]): Promise<HostFacts> {
  const [sftpServer, rustVirtiofsd, qemuVirtiofsd] = await Promise.all([
    findHelper(SFTP_SERVERS, 'sftp-server', path),
    findHelper(VIRTIOFSD, 'virtiofsd', path),
    findHelper(QEMU_VIRTIOFSD, undefined, path),
  ]);
  const virtiofsd = rustVirtiofsd
    ? ({ path: rustVirtiofsd, dialect: 'rust' } as const)
    : qemuVirtiofsd
      ? ({ path: qemuVirtiofsd, dialect: 'qemu' } as const)
      : undefined;
  return { sftpServer, virtiofsd, isRoot: process.getuid?.() === 0, features };
}

async function findHelper(places: readonly string[], name: string | undefined, path: string | undefined) {
  for (const place of places) {
    const found = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return place;
  }
  return name === undefined ? undefined : findProgram(name, programPath(path));
}

/** Returns features that at least one image has. Pure. */
export function featuresOf(images: readonly { features?: readonly string[] }[]): string[] {
  return [...new Set(images.flatMap(({ features = [] }) => features))];
}
