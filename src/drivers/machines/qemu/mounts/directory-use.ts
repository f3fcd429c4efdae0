import { RdError } from '../../../../errors.ts';
import type { parseMounts } from '../../shared/mountinfo.ts';
import type { Share } from './directories.ts';
import { USERS_SCRIPT } from './guest-scripts.ts';
import type { MounterParts } from './mount-types.ts';

const LIMIT_MS = 60_000;

interface Guest extends Pick<MounterParts, 'guest'> {
  /** The mounts of the guest. */
  table: ReturnType<typeof parseMounts>;
  signal: AbortSignal;
}

/**
 * Refuses to remove directories in use.
 * @throws RdError `ERR_DRIVER_FAILED` when a program in the guest uses one of the directories.
 */
export async function refuseInUse(shares: readonly Share[], { guest, table, signal }: Guest): Promise<void> {
  const mounts = table.filter(({ point, type }) => type !== 'tmpfs' && shares.some(({ real }) => point === real));
  if (mounts.length === 0) return;
  const words = mounts.flatMap(({ point, device }) => [point, device]);
  const { stdout } = await guest.run(['sh', '-s', '--', ...words], {
    input: USERS_SCRIPT,
    timeoutMs: LIMIT_MS,
    signal,
  });
  const uses = parseUsers(stdout);
  const [first] = uses;
  if (first === undefined) return;
  const { path } = shares.find(({ real }) => real === first.point) ?? { path: first.point };
  const programs = uses.filter(({ point }) => point === first.point).map(({ program }) => program);
  throw new RdError('ERR_DRIVER_FAILED', `${path} is in use in the machine by ${programs.join(', ')}`, {
    advice:
      'Stop the containers and close the shells that use it, or restart the machine with `rdctl shutdown` and `rdctl start`.',
  });
}

/** Parses the output of `USERS_SCRIPT`. `program`: such as `node (pid 12)`. */
export function parseUsers(text: string): { program: string; point: string }[] {
  return text.split('\n').flatMap((line) => {
    const [, pid, name, point] = /^(\d+) ([^\t]*)\t(.+)$/.exec(line) ?? [];
    return point === undefined ? [] : [{ program: `${name} (pid ${pid})`, point }];
  });
}
