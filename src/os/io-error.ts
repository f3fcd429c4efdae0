import { statSync } from 'node:fs';
import type { ErrorCode } from '../errors.ts';
import { messageOf, RdError } from '../errors.ts';

const REASONS: Readonly<Record<string, { reason: string; advice: string }>> = {
  EACCES: {
    reason: 'permission denied',
    advice: 'Give your user access to it, or set RDCTL_HOME to a directory of your own.',
  },
  EPERM: {
    reason: 'operation not permitted',
    advice: 'Give your user access to it, or set RDCTL_HOME to a directory of your own.',
  },
  EROFS: {
    reason: 'the file system is read-only',
    advice: 'Make it writable, or set RDCTL_HOME to a directory on another one.',
  },
  ENOSPC: { reason: 'no space left on the device', advice: 'Free some space there and try again.' },
  EDQUOT: { reason: 'the disk quota is used up', advice: 'Free some space there and try again.' },
  EISDIR: { reason: 'it is a directory', advice: 'Move the directory away: a file is expected there.' },
  ENOTDIR: { reason: 'part of the path is a file', advice: 'Move that file away: a directory is expected there.' },
  ENOENT: { reason: 'no such file or directory', advice: 'Check the path.' },
  ELOOP: {
    reason: 'it is a symbolic link, and links are not followed there',
    advice: 'Remove the link, or put the file itself there.',
  },
  ENAMETOOLONG: { reason: 'the path is too long', advice: 'Set RDCTL_HOME to a shorter path.' },
  EMFILE: { reason: 'too many open files', advice: 'Raise the limit on open files (ulimit -n) and try again.' },
};

const CIRCLE = { reason: 'the link leads to itself', advice: 'Remove the link, or put the file itself there.' };

/** Returns the `code` of a system error: `ENOENT`, `EACCES`, …; undefined for anything else. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Describes a failed file operation in one sentence. `action` is an infinitive: `write`, `read`, `create`. An RdError is returned unchanged. */
export function ioError(action: string, path: string, cause: unknown, code: ErrorCode = 'ERR_IO'): RdError {
  if (cause instanceof RdError) return cause;
  const known = isCircle(path, cause) ? CIRCLE : REASONS[systemCode(cause) ?? ''];
  const reason = known?.reason ?? messageOf(cause);
  return new RdError(code, `could not ${action} ${path}: ${reason}`, {
    cause,
    advice:
      known?.advice ?? 'Check the file system there and try again, or set RDCTL_HOME to a directory on another one.',
  });
}

/** True for a circular link. Where links are not followed, the system gives the same code for any link. */
function isCircle(path: string, cause: unknown): boolean {
  if (systemCode(cause) !== 'ELOOP') return false;
  try {
    statSync(path);
    return false;
  } catch (error) {
    return systemCode(error) === 'ELOOP';
  }
}
