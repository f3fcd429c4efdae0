/** Addresses of QEMU's user network: this computer, its name servers, and the guest. */
export const HOST = '10.0.2.2';
export const HOST_RESOLVER = '10.0.2.3';
export const GUEST = '10.0.2.15';
/** An unused address; packets to its port 53 are redirected to the forwarder. */
export const RESOLVER = '10.0.2.53';
/** Port of the forwarder. Not 53, which a container may publish, and outside the port ranges that the kernel and Kubernetes allocate from. */
const PORT = 61053;

/** The names that other container desktops give the host computer. */
const HOST_NAMES = ['host.docker.internal', 'host.rancher-desktop.internal', 'host.lima.internal'];

const CONFIGURATION = '/etc/rdctl/names.conf';
const RULES = '/etc/rdctl/names.rules';
const SCRIPT = '/usr/lib/rdctl/names';

/** Configuration of the forwarder. All other queries go to the host's name servers, so that VPN changes on the host take effect at once. */
const CONFIGURATION_TEXT = `port=${PORT}
listen-address=${GUEST}
bind-dynamic
no-hosts
no-resolv
server=${HOST_RESOLVER}@${GUEST}
cache-size=0
dns-forward-max=1000
host-record=${HOST_NAMES.join(',')},${HOST}
local=/${HOST_NAMES.join('/')}/
`;

const rule = (chain: string, protocol: string) =>
  `-A ${chain} -d ${RESOLVER}/32 -p ${protocol} --dport 53 -j DNAT --to-destination ${GUEST}:${PORT}\n`;
const CHAINS = ['PREROUTING', 'OUTPUT'];
const RULES_TEXT = `*nat\n${CHAINS.map((chain) => rule(chain, 'udp') + rule(chain, 'tcp')).join('')}COMMIT\n`;

/** Runs the forwarder. The rules are set once; the forwarder is restarted when it exits. */
const SCRIPT_TEXT = `#!/bin/sh
set -eu
if [ ! -e /run/rdctl-names ]; then
  iptables-restore --noflush --wait < ${RULES}
  : > /run/rdctl-names
fi
exec dnsmasq --keep-in-foreground --conf-file=${CONFIGURATION}
`;

const UNIT_TEXT = `[Unit]
Description=Names of the host, and the way to its name servers

[Service]
ExecStart=${SCRIPT}
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
`;

/** The forwarder's systemd unit. */
export const NAMES_UNIT = 'rdctl-names.service';

/**
 * Files that make the host resolvable by name in the guest. The guest's resolv.conf points to an address that containers and pods can reach too, so
 * engines and clusters pass it on.
 */
export const NAME_FILES = [
  { path: '/etc/resolv.conf', mode: 0o644, text: `nameserver ${RESOLVER}\n` },
  { path: CONFIGURATION, mode: 0o644, text: CONFIGURATION_TEXT },
  { path: RULES, mode: 0o644, text: RULES_TEXT },
  { path: SCRIPT, mode: 0o755, text: SCRIPT_TEXT },
  { path: `/etc/systemd/system/${NAMES_UNIT}`, mode: 0o644, text: UNIT_TEXT },
];
