import { readFile, writeFile } from 'node:fs/promises';

/** The host-wide switch for IP forwarding. */
export interface Forwarding {
  read(): Promise<boolean>;
  write(on: boolean): Promise<void>;
}

const FILE = '/proc/sys/net/ipv4/ip_forward';

export const hostForwarding: Forwarding = {
  read: async () => (await readFile(FILE, 'utf8')).trim() === '1',
  write: (on) => writeFile(FILE, on ? '1' : '0'),
};

/** Whether bridged packets pass the packet filter; other engines enable that for the whole host. */
export async function bridgesAreFiltered(): Promise<boolean> {
  const text = await readFile('/proc/sys/net/bridge/bridge-nf-call-iptables', 'utf8').catch(() => '0');
  return text.trim() === '1';
}

/** Facts that decide whether forwarding may be disabled again. */
export interface ForwardingUse {
  /** We enabled it during this boot. */
  changedByUs: boolean;
  otherBridges: number;
  foreignNat: boolean;
}

/**
 * Whether to disable forwarding again: only if we enabled it during this boot, and only while nothing else seems to need it. Programs that
 * start later find it on and do not declare that they need it, so in doubt it stays.
 */
export function mayRestore({ changedByUs, otherBridges, foreignNat }: ForwardingUse): boolean {
  return changedByUs && otherBridges === 0 && !foreignNat;
}
