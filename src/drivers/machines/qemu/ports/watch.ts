import { type GuestAddress, type Listening, publishedByRules } from './rules.ts';

/** A line of `WATCH_SCRIPT`: the current sockets, the ports of packet filter rules, or a heartbeat. */
export type WatchLine = { listening: Listening[] } | { published: Listening[] } | 'heartbeat';

/**
 * For bash. Prints `ports` and the kernel's tables of listening sockets when they change, again two seconds later, and `.` every 30
 * seconds: a write is the only way to notice that the reader is gone. Counts the sockets every two seconds, and lists them when the number has
 * changed, else every 30 seconds: processes are expensive in an emulated guest. A `read` of a pipe that nobody writes to waits without one.
 *
 * Prints `rules` and the packet filter rules that publish ports, first and when they change. Almost every rule counts as a use of the
 * kernel's `nf_tables`, so they are listed when that number has changed; while there are some, also every minute. `COMMIT` ends a whole list.
 */
export const WATCH_SCRIPT = `before=none
counted=none
second=0
again=
used=
rules=
exec 3<> <(:)
while :; do
  uses=$used
  [ ! -r /sys/module/nf_tables/refcnt ] || read -r uses < /sys/module/nf_tables/refcnt
  if [ "$uses" != "$used" ] || { [ "$rules" != COMMIT ] && [ "$((second % 60))" = 0 ]; }; then
    used=$uses
    now=$(iptables-save -t nat 2>/dev/null | grep -E '^(COMMIT|-A (KUBE-NODEPORTS|CNI-HOSTPORT-DNAT) .*|-A CNI-DN-[0-9a-f]+ .* DNAT .*|-A KUBE-SERVICES .* (loadbalancer|external) IP".*)$')
    if [ "$now" != "$rules" ] && [ "\${now: -6}" = COMMIT ]; then
      echo "rules\t\${now//$'\\n'/$'\\t'}" || exit 0
      rules=$now
    fi
  fi
  ipv6=()
  mapfile -t ipv4 < /proc/net/sockstat
  [ ! -r /proc/net/sockstat6 ] || mapfile -t ipv6 < /proc/net/sockstat6
  # "TCP: inuse 7 orphan 0 tw 0 alloc 7 mem 1", of which memory and orphans say nothing about listeners; "UDP: inuse 3 mem 1".
  count="\${ipv4[1]%% orphan*} \${ipv4[2]%% mem*} \${ipv6[0]} \${ipv6[1]}"
  if [ "$count" != "$counted" ] || [ "$second" = "$again" ] || [ "$((second % 30))" = 0 ]; then
    counted="$count"
    now=$(grep -ohE '[0-9A-F]{8,32}:[0-9A-F]{4} [0-9A-F]{8,32}:0000 (0A|07) ' /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 2>/dev/null)
    if [ "$now" != "$before" ] || [ "$second" = "$again" ]; then
      echo ports $now || exit 0
      [ "$now" = "$before" ] || again=$((second + 2))
      before=$now
    fi
  fi
  [ "$((second % 30))" != 0 ] || echo . || exit 0
  second=$((second + 2))
  read -r -t 2 -u 3
done
`;

/** Local address and port, remote address and port, and the state: LISTEN of TCP, or 07 of UDP without a peer. */
const SOCKET = / ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:0000 (0A|07)/g;
const LINE = /^ports(?: (?:[0-9A-F]{8}|[0-9A-F]{32}):[0-9A-F]{4} [0-9A-F]+:0000 (?:0A|07))*$/;

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

/** Parses a line. Undefined for a damaged one: a partial list would remove forwards. */
export function parseWatchLine(line: string): WatchLine | undefined {
  const text = line.trimEnd();
  if (text === '.') return 'heartbeat';
  const [head, ...rules] = text.split('\t');
  if (head === 'rules') return rules.pop() === 'COMMIT' ? { published: publishedByRules(rules) } : undefined;
  return LINE.test(text) ? { listening: parseSockets(text) } : undefined;
}

/** Returns the sockets in the kernel's tables of TCP and UDP, `/proc/net/{tcp,tcp6,udp,udp6}`, that take connections or datagrams from anyone. */
export function parseSockets(text: string): Listening[] {
  const listening: Listening[] = [];
  for (const [, hex = '', port = '', state] of text.matchAll(SOCKET)) {
    const address = ADDRESSES.get(hex);
    const number = Number.parseInt(port, 16);
    if (address !== undefined && number > 0) {
      listening.push({ protocol: state === '07' ? 'udp' : 'tcp', port: number, address });
    }
  }
  return listening;
}
