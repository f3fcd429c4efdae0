/** An address of the guest that a program listens on; others are those of a network of its own, and are left out. */
export type GuestAddress = '0.0.0.0' | '::' | '127.0.0.1' | '::1';

/** A socket of the guest that takes connections. */
export interface Listening {
  port: number;
  address: GuestAddress;
}

/** What the script below says: the sockets that there are now, or only that it is still there. */
export type WatchLine = { listening: Listening[] } | 'still there';

/**
 * Looks once a second, with two programs a look because a guest may be slow. Prints `ports` and what the kernel says of each socket
 * that takes connections whenever that changes, and `.` in between: without something to print it would not notice that nobody
 * listens any more.
 */
export const WATCH_SCRIPT = `before=none
quiet=0
while :; do
  now=$(grep -ohE '[0-9A-F]{8,32}:[0-9A-F]{4} [0-9A-F]{8,32}:0000 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  if [ "$now" != "$before" ]; then
    echo ports $now || exit 0
    before=$now
    quiet=0
  elif [ "$quiet" -ge 5 ]; then
    echo . || exit 0
    quiet=0
  fi
  quiet=$((quiet + 1))
  sleep 1
done
`;

/** Local address and port, remote address and port, and the state for "listens". */
const SOCKET = / ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:0000 0A/g;
const LINE = /^ports(?: (?:[0-9A-F]{8}|[0-9A-F]{32}):[0-9A-F]{4} [0-9A-F]+:0000 0A)*$/;

/** As the kernel of a little-endian processor writes them: words of four bytes, each backwards. */
const ADDRESSES: ReadonlyMap<string, GuestAddress> = new Map([
  ['00000000', '0.0.0.0'],
  ['0100007F', '127.0.0.1'],
  ['00000000000000000000000000000000', '::'],
  ['00000000000000000000000001000000', '::1'],
  // IPv4 in the clothes of IPv6.
  ['0000000000000000FFFF000000000000', '0.0.0.0'],
  ['0000000000000000FFFF00000100007F', '127.0.0.1'],
]);

/** Undefined for a line that is damaged: half of a list would take ports away. */
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
