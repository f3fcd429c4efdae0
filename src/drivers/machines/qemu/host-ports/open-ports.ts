import { mergePortRanges, portRange } from '../../../../settings/machine-values.ts';
import type { OpenHostPorts, PublishedPort } from '../../../driver.ts';
import type { Listening, Protocol } from '../ports/rules.ts';

/** Inclusive. */
type Range = [first: number, last: number];

/** Listening sockets of this host. */
export interface HostSockets {
  listening: readonly Listening[];
  /** Range in which the kernel chooses ports for clients, whose UDP sockets look like servers. */
  clientPorts: Range;
}

/**
 * Returns the open ports: those in `allowed`, those that are forwarded to the guest and so lead back to it, and those that this host offers to
 * everyone, because a program listens there on all addresses and anyone who reaches any address of this host reaches it. If another program listens
 * on 127.0.0.1 at the same port, the guest would reach that one, and the port is not open. Pure.
 * @param allowed ports and ranges, of both protocols.
 * @param forwarded ports of the service's own forwards.
 * @param sockets absent if they cannot be read.
 */
export function openPorts(
  allowed: readonly string[],
  forwarded: readonly Pick<PublishedPort, 'protocol' | 'port' | 'state'>[],
  sockets: HostSockets | undefined,
): OpenHostPorts {
  const chosen = allowed.map(portRange);
  const single = (protocol: Protocol) => [
    ...forwarded.filter((port) => port.protocol === protocol && port.state === 'forwarded').map(({ port }) => port),
    ...(sockets === undefined ? [] : offeredPorts(protocol, sockets)),
  ];
  const merged = (protocol: Protocol) =>
    mergePortRanges([...chosen, ...single(protocol).map((port): Range => [port, port])]).map(rangeText);
  return { tcp: merged('tcp'), udp: merged('udp') };
}

function offeredPorts(protocol: Protocol, { listening, clientPorts: [first, last] }: HostSockets): number[] {
  const sockets = listening.filter((socket) => socket.protocol === protocol);
  const own = new Set(sockets.filter(({ address }) => address === '127.0.0.1').map(({ port }) => port));
  return sockets
    .filter(({ address }) => address === '0.0.0.0' || address === '::')
    .map(({ port }) => port)
    .filter((port) => !own.has(port) && (protocol === 'tcp' || port < first || port > last));
}

function rangeText([first, last]: Range): string {
  return first === last ? String(first) : `${first}-${last}`;
}
