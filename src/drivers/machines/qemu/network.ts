import type { EngineNetwork } from '../../shell.ts';

/** The same in every guest: a guest hosts nothing else, and its addresses are not visible outside. */
export const GUEST_NETWORK: EngineNetwork = { bridge: 'rdctl0', pool: '172.30.0.0/16', shared: false };
const BRIDGE_ADDRESS = '172.30.0.1/24';

/** Creates the containers' bridge and its NAT rule. Idempotent. */
export const NETWORK_SCRIPT = `set -eu
[ -e /sys/class/net/${GUEST_NETWORK.bridge} ] || ip link add ${GUEST_NETWORK.bridge} type bridge
ip address replace ${BRIDGE_ADDRESS} dev ${GUEST_NETWORK.bridge}
ip link set ${GUEST_NETWORK.bridge} up
rule='POSTROUTING -s ${GUEST_NETWORK.pool} ! -d ${GUEST_NETWORK.pool} -j MASQUERADE'
iptables -w -t nat -C $rule 2>/dev/null || iptables -w -t nat -A $rule
`;
