import { GUEST_ADDRESS } from '../arguments.ts';

/**
 * A guest address that a program listens on, or for which packet filter rules publish a port; addresses of container networks are excluded.
 * Rules apply to connections to the machine's own address, not to its loopback interface.
 */
export type GuestAddress = '0.0.0.0' | '::' | '127.0.0.1' | '::1' | typeof GUEST_ADDRESS;

export type Protocol = 'tcp' | 'udp';

/** A port that leads to a program of the guest: a listening socket (of UDP, one that takes datagrams from anyone), or rules. */
export interface Listening {
  protocol: Protocol;
  port: number;
  address: GuestAddress;
  /** The publisher of the port, if known: `kube-system/traefik:web`, or `container 3f0a1b2c3d4e`. */
  claimedBy?: string;
}

/** Matches the comment of a rule, which may contain any text, apart from the rest. */
const COMMENT = / --comment (?:"((?:[^"\\]|\\.)*)"|(\S+))/;
const CLUSTER_IP_KINDS = / (?:loadbalancer|external) IP$/;

/**
 * Returns the ports that rules of `iptables-save -t nat` publish: node ports and load balancers of kube-proxy (`KUBE-NODEPORTS`, `KUBE-SERVICES`)
 * first, then those of the CNI plugin `portmap` (`CNI-HOSTPORT-DNAT`), which pods with a `hostPort` and containerd clients use. Pure.
 */
export function publishedByRules(rules: readonly string[]): Listening[] {
  const parsed = rules.map(parseRule);
  const containers = new Map(
    parsed.flatMap(({ chain, jump, comment }) =>
      chain === 'CNI-HOSTPORT-DNAT' ? [[jump, containerOf(comment)] as const] : [],
    ),
  );
  const services: Listening[] = [];
  const hostPorts: Listening[] = [];
  for (const { chain, jump, protocol, port, destination, comment } of parsed) {
    if (protocol === undefined || port === undefined) continue;
    if (chain === 'KUBE-NODEPORTS' && destination === undefined) {
      services.push({ protocol, port, address: GUEST_ADDRESS, claimedBy: comment });
    } else if (chain === 'KUBE-SERVICES' && destination === GUEST_ADDRESS && CLUSTER_IP_KINDS.test(comment)) {
      services.push({ protocol, port, address: GUEST_ADDRESS, claimedBy: comment.replace(CLUSTER_IP_KINDS, '') });
    } else if (chain.startsWith('CNI-DN-') && jump === 'DNAT') {
      const address = hostAddress(destination);
      const claimedBy = containers.get(chain);
      if (address !== undefined) hostPorts.push({ protocol, port, address, ...(claimedBy ? { claimedBy } : {}) });
    }
  }
  return [...services, ...hostPorts];
}

interface Rule {
  chain: string;
  jump: string;
  protocol: Protocol | undefined;
  port: number | undefined;
  /** Address without `/32`; undefined for any. */
  destination: string | undefined;
  comment: string;
}

function parseRule(line: string): Rule {
  const [, quoted, bare] = COMMENT.exec(line) ?? [];
  const words = line.replace(COMMENT, '').split(' ');
  const after = (option: string) => (words.includes(option) ? words[words.indexOf(option) + 1] : undefined);
  const protocol = after('-p');
  const port = Number(after('--dport'));
  return {
    chain: after('-A') ?? '',
    jump: after('-j') ?? '',
    protocol: protocol === 'tcp' || protocol === 'udp' ? protocol : undefined,
    port: Number.isInteger(port) && port >= 1 && port <= 65_535 ? port : undefined,
    destination: after('-d')?.replace(/\/32$/, ''),
    comment: (quoted ?? bare ?? '').replaceAll(/\\(.)/g, '$1'),
  };
}

/** Returns the guest address of a host port, or undefined for one that leads nowhere from here. */
function hostAddress(destination: string | undefined): GuestAddress | undefined {
  if (destination === undefined || destination === GUEST_ADDRESS) return GUEST_ADDRESS;
  return destination === '127.0.0.1' ? destination : undefined;
}

/** Returns the container in the comment of `portmap`: `dnat name: "NETWORK" id: "ID"`; the id may have a namespace in front (`default-3f0a…`). */
function containerOf(comment: string): string | undefined {
  const id = / id: "(?:.*-)?([^"-]+)"$/.exec(comment)?.[1];
  return id === undefined ? undefined : `container ${id.slice(0, 12)}`;
}
