import type { OpenHostPorts } from '../../../driver.ts';
import { GUEST, HOST, HOST_RESOLVER, RESOLVER } from '../../../guest-images/host-names.ts';

/** QEMU's user network: it leads connections to its addresses to 127.0.0.1 of this host. */
const NETWORK = '10.0.2.0/24';
/** QEMU also leads connections to this address to 127.0.0.1, if a packet to it ever leaves the guest. */
const BROADCAST = '255.255.255.255';
const ALIASES = ['127.0.0.0/8', '0.0.0.0/8', `${BROADCAST}/32`];
const CHAIN = 'RDCTL-HOST';
/** A port of the guest where nothing listens (tcpmux): connections that are redirected there are refused at once. */
const CLOSED_PORT = 1;

const table = (name: string, rules: readonly string[]) => `*${name}\n${rules.join('\n')}\nCOMMIT\n`;
const append = (rule: string) => `-A ${CHAIN} ${rule}`;
const insert = (chain: string, match: string) => `-I ${chain} ${match} -j ${CHAIN}`;

/**
 * Returns the rules for `iptables-restore --noflush`. Connections to closed ports are refused by redirecting them, in the table nat; the table mangle
 * holds even if a rule of an engine or a cluster translates another address to one of the network, because it sees packets last, and no engine and no
 * cluster accepts packets there. Both are independent of the order of rules in the table filter.
 */
export function filterRules({ tcp, udp }: OpenHostPorts): string {
  const open = [
    ...['udp', 'tcp'].map((protocol) => `-d ${HOST_RESOLVER}/32 -p ${protocol} --dport 53 -j RETURN`),
    // QEMU answers DHCP itself.
    ...[HOST, BROADCAST].map((address) => `-d ${address}/32 -p udp --dport 67 -j RETURN`),
    ...tcp.map((ports) => openRule('tcp', ports)),
    ...udp.map((ports) => openRule('udp', ports)),
  ];
  return (
    table('nat', [
      `:${CHAIN} -`,
      ...[GUEST, RESOLVER].map((address) => append(`-d ${address}/32 -j RETURN`)),
      ...open.map(append),
      ...['tcp', 'udp'].map((protocol) => append(`-p ${protocol} -j REDIRECT --to-ports ${CLOSED_PORT}`)),
    ]) +
    table('mangle', [
      `:${CHAIN} -`,
      // QEMU opens a connection at the first packet of one, and nothing at any other.
      append('-p tcp ! --syn -j RETURN'),
      // Responses of ports that are forwarded from this host.
      append('-p udp -m conntrack --ctdir REPLY -j RETURN'),
      append('-p icmp -j RETURN'),
      ...open.map(append),
      append('-j DROP'),
    ])
  );
}

function openRule(protocol: string, ports: string): string {
  return `-d ${HOST}/32 -p ${protocol} --dport ${ports.replace('-', ':')} -j RETURN`;
}

/** Puts packets through the chains: needed once in each boot of the guest, and harmless when repeated. */
const JUMPS =
  table('nat', [insert('PREROUTING', `-d ${NETWORK}`), insert('OUTPUT', `-d ${NETWORK}`)]) +
  table(
    'mangle',
    [NETWORK, ...ALIASES].map((addresses) => insert('POSTROUTING', `! -o lo -d ${addresses}`)),
  );

/** File with the rules in force. Kept in memory, so that it is frozen and resumed with them. */
const IN_FORCE = '/run/rdctl-host-ports';

/** Applies the rules on standard input. Replaces those in force, each table at once, and does nothing if they are the same. */
export const FILTER_SCRIPT = `set -eu
rules=$(cat)
if [ -e ${IN_FORCE} ]; then
  [ "$rules" != "$(cat ${IN_FORCE})" ] || exit 0
  jumps=
else
  jumps='${JUMPS}'
fi
printf '%s\\n%s' "$rules" "$jumps" | iptables-restore --noflush --wait
printf '%s' "$rules" > ${IN_FORCE}.new
mv ${IN_FORCE}.new ${IN_FORCE}
`;
