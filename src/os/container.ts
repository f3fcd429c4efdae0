import { existsSync, readFileSync } from 'node:fs';

/** Files that a runtime mounts into each of its containers, one by one. */
const MOUNTED_FILES = ['/etc/hosts', '/etc/hostname', '/etc/resolv.conf'];

/**
 * True in a container. The mark of a runtime is not enough: it is still there when the files of an image have become the disk of a computer, whose
 * users may have their accounts elsewhere.
 */
export function isContainer(): boolean {
  const isMarked =
    existsSync('/.dockerenv') || existsSync('/run/.containerenv') || process.env.KUBERNETES_SERVICE_HOST !== undefined;
  return isMarked && hasMountedFiles(mountInfo());
}

/**
 * True if the container's own files are mounts. Pure.
 * @param mountInfo as in `/proc/self/mountinfo`.
 */
export function hasMountedFiles(mountInfo: string): boolean {
  const places = mountInfo.split('\n').map((line) => line.split(' ')[4]);
  return MOUNTED_FILES.some((file) => places.includes(file));
}

function mountInfo(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return '';
  }
}
