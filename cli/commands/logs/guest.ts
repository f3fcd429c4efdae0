import { RdError } from '../../../src/errors.ts';
import { type LineSelection, lineSplitter, selectLines, sinceFilter } from '../../../src/os/log-lines.ts';
import { shellLine } from '../../../src/os/program.ts';
import { stream } from '../../../src/os/run.ts';
import type { MachineAccess } from '../../../src/reconcile/status-document.ts';
import type { Io } from '../../command.ts';

/** Milliseconds, longer than anybody follows a log; timers cannot wait for 25 days. */
const LIMIT_MS = 24 * 24 * 3_600_000;
/** First output of the script if there is no such log. */
const NONE = 'none';

/**
 * Prints files: `$1` is the number of lines (`+1`: all), `$2` is `follow` or not; then come the files, oldest first. Nothing remains of a follower:
 * its standard input ends with the connection, which `tail` itself notices only at the next line.
 */
const READ_SCRIPT = `lines=$1 follow=$2
shift 2
for file; do
  shift
  if [ -f "$file" ]; then set -- "$@" "$file"; fi
done
if [ $# = 0 ]; then echo ${NONE}; exit 0; fi
echo some
if [ "$follow" = follow ]; then
  for file; do :; done
  tail -n "$lines" -F -- "$file" 2>/dev/null &
  cat > /dev/null
  kill $!
  exit 0
fi
cat -- "$@" | tail -n "$lines"
`;

/**
 * Returns the selected lines of a log in the machine. With `follow`, they are only those of the newest file, and every later line follows until the
 * signal of `io` aborts.
 * @param files newest first.
 * @returns undefined if there is none. Throws `ERR_NOT_READY` without a connection.
 */
export async function readGuestLog(
  access: MachineAccess,
  files: readonly string[],
  { selection, follow, io }: { selection: LineSelection; follow: boolean; io: Pick<Io, 'env' | 'signal'> },
): Promise<AsyncGenerator<string, void> | undefined> {
  const count = selection.since === undefined && selection.last !== undefined ? String(selection.last) : '+1';
  const words = ['sh', '-c', READ_SCRIPT, 'logs', count, follow ? 'follow' : 'once', ...[...files].reverse()];
  const argv = [...access.ssh, '-T', access.target, shellLine([...access.before, ...words])];
  // A client of a control master waits for the remote program, whatever its own options are.
  const bytes = stream(argv, { env: io.env, signal: io.signal, timeoutMs: LIMIT_MS, graceMs: 0, holdsInput: true });
  const lines = linesOf(bytes);
  const first = await lines.next();
  if (first.done || first.value === NONE) {
    await lines.return();
    return undefined;
  }
  return follow ? since(lines, selection) : selectGuestLines(lines, selection);
}

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const splitter = lineSplitter();
  try {
    for await (const chunk of bytes) yield* splitter.add(chunk);
  } catch (error) {
    throw unreachable(error);
  }
  yield* splitter.rest();
}

async function* selectGuestLines(lines: AsyncIterable<string>, selection: LineSelection): AsyncGenerator<string, void> {
  yield* (await selectLines(lines, selection)).lines;
}

async function* since(lines: AsyncIterable<string>, selection: LineSelection): AsyncGenerator<string, void> {
  const isWanted = sinceFilter(selection.since);
  for await (const line of lines) if (isWanted(line)) yield line;
}

function unreachable(error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') return error;
  return new RdError(
    'ERR_NOT_READY',
    `The virtual machine cannot be reached: ${error.details.at(-1) ?? error.message}`,
    {
      cause: error,
      advice: 'Check `rdctl status`.',
    },
  );
}
