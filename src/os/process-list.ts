import { RdError } from '../errors.ts';
import { run } from './run.ts';

/** A process. A pid alone does not identify one, because pids are reused. */
export interface ProcessIdentity {
  pid: number;
  /** Its start time in an opaque form for comparison (Linux: boot id and start tick); absent if the system does not provide it. */
  started?: string;
}

/** A process of this boot, as the system shows it. */
export interface ProcessKey extends ProcessIdentity {
  started: string;
}

export interface ProcessEntry extends ProcessKey {
  parent: number;
  /** Split at blanks where the system shows a single text (macOS). */
  argv: readonly string[];
}

/** `ctime` in the C locale: `Tue Nov 24 11:30:59 2026`, to the second. */
const LINE = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S{3} \S{3} [ \d]\d \d\d:\d\d:\d\d \d{4}) (.*)$/;
const MAX_OUTPUT = 16 * 1024 * 1024;

/**
 * Lists processes with `ps`, for systems without `/proc`. Those that have ended and wait for their parent are left out.
 * @param pid only this one; all by default.
 */
export async function listProcesses(pid?: number): Promise<ProcessEntry[]> {
  const { exitCode, stdout } = await run(
    ['ps', '-ww', '-o', 'pid=,ppid=,stat=,lstart=,command=', ...(pid === undefined ? ['-ax'] : ['-p', String(pid)])],
    // It exits with 1 if there is no such process.
    { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }, accept: [0, 1], maxOutput: MAX_OUTPUT },
  );
  if (exitCode !== 0 && pid === undefined) {
    throw new RdError('ERR_DRIVER_FAILED', 'ps does not list the processes of this computer');
  }
  return parseProcesses(stdout);
}

/** Parses the table of `ps`. Pure. */
export function parseProcesses(table: string): ProcessEntry[] {
  return table.split('\n').flatMap((line) => {
    const [, pid, parent, state = '', started = '', command = ''] = LINE.exec(line) ?? [];
    if (pid === undefined || state.startsWith('Z')) return [];
    return [{ pid: Number(pid), parent: Number(parent), started, argv: command.split(' ') }];
  });
}
