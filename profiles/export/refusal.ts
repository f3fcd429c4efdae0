import { RdError } from '../../src/errors.ts';

/** Takes what a format cannot hold: the path of the setting or entry, and why as a clause. */
export type Refuse = (path: string, reason: string) => void;

/**
 * What `write` returns, when it refused nothing. An administrator learns everything at once, and gets no file that says less
 * than was asked for.
 * @param format as a subject: `a property list`.
 * @throws RdError `ERR_PROFILE_INVALID` with every refusal as `path: reason` (`details`).
 */
export function writingAll<T>(format: string, write: (refuse: Refuse) => T): T {
  const details: string[] = [];
  const written = write((path, reason) => void details.push(`${path}: ${reason}`));
  if (details.length === 0) return written;
  throw new RdError('ERR_PROFILE_INVALID', `${format} cannot hold what the settings say:`, {
    details,
    advice: 'Change these values or leave them out; nothing is replaced on the way.',
  });
}
