import { readFile, writeFile } from 'node:fs/promises';

/** The host-wide switch that lets packets pass between links. */
export interface Forwarding {
  read(): Promise<boolean>;
  write(on: boolean): Promise<void>;
}

const FILE = '/proc/sys/net/ipv4/ip_forward';

export const hostForwarding: Forwarding = {
  read: async () => (await readFile(FILE, 'utf8')).trim() === '1',
  write: (on) => writeFile(FILE, on ? '1' : '0'),
};

/** Whether packets between two ports of one bridge pass the packet filter, which other engines switch on for the host. */
export async function bridgesAreFiltered(): Promise<boolean> {
  const text = await readFile('/proc/sys/net/bridge/bridge-nf-call-iptables', 'utf8').catch(() => '0');
  return text.trim() === '1';
}

/** Facts that decide whether the switch may go back. */
export interface ForwardingUse {
  /** This boot's switch was off until we turned it on. */
  changedByUs: boolean;
  otherBridges: number;
  othersTranslate: boolean;
}

/**
 * Whether to turn forwarding off again: only what we turned on in this boot, and only while nothing else on the host looks as
 * if it needed it. Others that start while it is on find it on and do not say that they need it, so in doubt it stays.
 */
export function mayRestore({ changedByUs, otherBridges, othersTranslate }: ForwardingUse): boolean {
  return changedByUs && otherBridges === 0 && !othersTranslate;
}
