import semver from 'semver';
import { RdError } from '../../errors.ts';
import type { Platform } from '../../settings/field.ts';

/** The file of a release for one target. */
export interface ReleaseFile {
  version: string;
  /** File name: `rdctl-VERSION-TARGET`, with `.exe` for Windows. */
  name: string;
  /** Digest as 64 lowercase hexadecimal digits. */
  sha256: string;
}

/** Returns the end of the file name for a computer: `linux-x64`, `windows-x64.exe`. */
export function targetSuffix(platform: Platform, arch: string): string {
  return platform === 'win32' ? `windows-${arch}.exe` : `${platform}-${arch}`;
}

/** Whether a text is a release version: three numbers, optionally a prerelease, and no build metadata. */
export function isVersion(text: string): boolean {
  return text.length <= 64 && semver.valid(text) === text;
}

const LINE = /^([0-9a-f]{64}) {2}([\w.+-]+(?:\/[\w.+-]+)*)$/;

/**
 * Finds the file of a target in verified sums. The version is part of the signed name, so that nobody can pass one release off as another.
 * @param expected the requested version.
 * @throws RdError `ERR_UPGRADE_REFUSED` when there is none, or more than one, and for another version than expected.
 */
export function fileInSums(sums: string, suffix: string, expected: string): ReleaseFile {
  const files = sums.split('\n').flatMap((line) => {
    const [, sha256 = '', name = ''] = LINE.exec(line) ?? [];
    if (line !== '' && name === '')
      throw refusalError(`its SHA256SUMS has a line that is no sum: ${JSON.stringify(line)}`);
    const version = name.startsWith('rdctl-') && name.endsWith(`-${suffix}`) ? name.slice(6, -suffix.length - 1) : '';
    return isVersion(version) ? [{ version, name, sha256 }] : [];
  });
  const [file, ...more] = files;
  if (!file) throw refusalError(`it has no file for ${suffix}`);
  if (more.length > 0) throw refusalError(`it has more than one file for ${suffix}`);
  if (file.version !== expected) {
    throw refusalError(`the signed file in the place of ${expected} is ${file.name}`);
  }
  return file;
}

function refusalError(why: string): RdError {
  return new RdError('ERR_UPGRADE_REFUSED', `the release cannot be used: ${why}`, {
    advice: 'Nothing was changed. Report it to the publisher of the release, or choose another one with --version.',
  });
}
