/** A guest address that a program listens on; addresses of container networks are excluded. */
export type GuestAddress = '0.0.0.0' | '::' | '127.0.0.1' | '::1';

/** A listening socket of the guest. */
export interface Listening {
  port: number;
  address: GuestAddress;
}

/** A line of the script below: the current sockets, or a heartbeat. */
export type WatchLine = { listening: Listening[] } | 'still there';

/**
 * For bash. Prints `ports` and the kernel's table of listening sockets whenever it changes, and `.` in between: a write is the only way to
 * notice that the reader is gone. Looks at the number of sockets once a second, and at the sockets when that has changed, else every five
 * seconds. Processes are expensive in an emulated guest, and an idle second starts none: a `read` of a pipe that nobody writes to waits.
 */
export const WATCH_SCRIPT = `before=none
counted=none
quiet=5
exec 3<> <(:)
while :; do
  counts=()
  for file in /proc/net/sockstat /proc/net/sockstat6; do
    [ -r "$file" ] || continue
    while read -r kind inuse number rest; do
      case "$kind" in TCP:|TCP6:) counts+=("$number") ;; esac
    done < "$file"
  done
  if [ "\${counts[*]}" != "$counted" ] || [ "$quiet" -ge 5 ]; then
    counted="\${counts[*]}"
    quiet=0
    now=$(grep -ohE '[0-9A-F]{8,32}:[0-9A-F]{4} [0-9A-F]{8,32}:0000 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    if [ "$now" != "$before" ]; then
      echo ports $now || exit 0
      before=$now
    else
      echo . || exit 0
    fi
  fi
  quiet=$((quiet + 1))
  read -r -t 1 -u 3
done
`;

/** Local address and port, remote address and port, and the state LISTEN. */
const SOCKET = / ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:0000 0A/g;
const LINE = /^ports(?: (?:[0-9A-F]{8}|[0-9A-F]{32}):[0-9A-F]{4} [0-9A-F]+:0000 0A)*$/;

/** A little-endian kernel prints words of four bytes, each reversed. */
const ADDRESSES: ReadonlyMap<string, GuestAddress> = new Map([
  ['00000000', '0.0.0.0'],
  ['0100007F', '127.0.0.1'],
  ['00000000000000000000000000000000', '::'],
  ['00000000000000000000000001000000', '::1'],
  // IPv4-mapped IPv6.
  ['0000000000000000FFFF000000000000', '0.0.0.0'],
  ['0000000000000000FFFF00000100007F', '127.0.0.1'],
]);

/** Undefined for a damaged line: a partial list would remove forwards. */
export function parseWatchLine(line: string): WatchLine | undefined {
  const text = line.trimEnd();
  if (text === '.') return 'still there';
  if (!LINE.test(text)) return undefined;
  const listening: Listening[] = [];
  for (const [, hex = '', port = ''] of text.matchAll(SOCKET)) {
    const address = ADDRESSES.get(hex);
    const number = Number.parseInt(port, 16);
    if (address !== undefined && number > 0) listening.push({ port: number, address });
  }
  return { listening };
}
