import { readFile, writeFile } from 'node:fs/promises';
import type { Run } from '../../shell.ts';

/** Input of the firewall rules. */
export interface FirewallPlan {
  chain: string;
  tag: string;
  /** Range of all networks of the instance. */
  pool: string;
  /** Bridges of other engines; their containers stay unreachable. */
  otherBridges: readonly string[];
  /** True if bridged packets pass the packet filter here. Only then is there a rule for them, because its match enables that for the whole host. */
  bridgeFilter: boolean;
}

/** A table's own chain, and the hook that jumps to it. */
interface Hook {
  table: 'mangle' | 'filter' | 'nat';
  from: string;
}
const HOOKS: readonly Hook[] = [
  { table: 'mangle', from: 'FORWARD' },
  { table: 'filter', from: 'FORWARD' },
  { table: 'nat', from: 'POSTROUTING' },
];

const BRIDGED = '--physdev-is-bridged';
const WAIT = ['--wait', '10'];

/**
 * Returns the rules of the chains, as arguments without the comment. Containers reach outwards; replies are accepted; nothing from outside reaches
 * a container by its address (a host program serves published ports); networks of the instance are isolated from each other.
 *
 * Refusals are in `mangle` as well, which precedes `filter`: an engine that starts later puts its accept rules for its own bridges before
 * ours in `filter`.
 */
export function firewallRules({
  pool,
  otherBridges,
  bridgeFilter,
}: FirewallPlan): Record<Hook['table'], readonly string[][]> {
  const refusals = (pass: 'RETURN' | 'ACCEPT') => [
    ...(bridgeFilter ? [['-s', pool, '-d', pool, '-m', 'physdev', BRIDGED, '-j', pass]] : []),
    ['-d', pool, '-m', 'conntrack', '--ctstate', 'RELATED,ESTABLISHED', '-j', pass],
    ['-d', pool, '-j', 'DROP'],
    ...otherBridges.map((bridge) => ['-s', pool, '-o', bridge, '-j', 'DROP']),
  ];
  return {
    mangle: refusals('RETURN'),
    filter: [...refusals('ACCEPT'), ['-s', pool, '-j', 'ACCEPT']],
    nat: [['-s', pool, '!', '-d', pool, '-j', 'MASQUERADE']],
  };
}

/** Returns the input of `iptables-restore --noflush`, which replaces the chains atomically and leaves everything else alone. */
export function restoreInput(plan: FirewallPlan): string {
  const rules = firewallRules(plan);
  const tables = HOOKS.map(({ table }) => [
    `*${table}`,
    `:${plan.chain} - [0:0]`,
    ...rules[table].map((rule) => `-A ${plan.chain} -m comment --comment ${plan.tag} ${rule.join(' ')}`),
    'COMMIT',
  ]);
  return `${tables.flat().join('\n')}\n`;
}

/** Rules of an instance found in the output of `iptables-save`. */
export interface FirewallTraces {
  /** Tables with the chain. */
  chains: string[];
  /** Jumps from each table's hook to the chain. */
  jumps: Record<Hook['table'], number>;
  /** Rules inside the chain. */
  rules: Record<Hook['table'], number>;
  /** Rules for packets inside a bridge. */
  bridged: number;
}

export function parseTraces(saved: string, chain: string): FirewallTraces {
  const traces: FirewallTraces = {
    chains: [],
    jumps: { mangle: 0, filter: 0, nat: 0 },
    rules: { mangle: 0, filter: 0, nat: 0 },
    bridged: 0,
  };
  let hook: Hook | undefined;
  for (const line of saved.split('\n')) {
    if (line.startsWith('*')) hook = HOOKS.find(({ table }) => line === `*${table}`);
    if (!hook) continue;
    if (line.startsWith(`:${chain} `)) traces.chains.push(hook.table);
    if (line.startsWith(`-A ${chain} `)) {
      traces.rules[hook.table] += 1;
      if (line.includes(BRIDGED)) traces.bridged += 1;
    }
    if (line.startsWith(`-A ${hook.from} `) && line.endsWith(` -j ${chain}`)) traces.jumps[hook.table] += 1;
  }
  return traces;
}

export async function readTraces(run: Run, chain: string): Promise<FirewallTraces> {
  return parseTraces((await run(['iptables-save'], { maxOutput: 64 * 1024 * 1024 })).stdout, chain);
}

/** Returns `none`, `whole` (as planned) or `part`. Ignores other engines' bridges, which may have changed since. */
export function completeness(traces: FirewallTraces, bridgeFilter: boolean): 'none' | 'whole' | 'part' {
  const bare = firewallRules({ chain: '', tag: '', pool: '0.0.0.0/0', otherBridges: [], bridgeFilter });
  const nothing = traces.chains.length === 0 && HOOKS.every(({ table }) => traces.jumps[table] === 0);
  if (nothing) return 'none';
  const whole = HOOKS.every(({ table }) => traces.jumps[table] === 1 && traces.rules[table] >= bare[table].length);
  const bridged = Object.values(bare).flatMap((rules) => rules.filter((rule) => rule.includes(BRIDGED)));
  return whole && traces.bridged >= bridged.length ? 'whole' : 'part';
}

function jumpRule({ chain, tag }: Pick<FirewallPlan, 'chain' | 'tag'>): string[] {
  return ['-m', 'comment', '--comment', tag, '-j', chain];
}

/** Installs the rules. Idempotent. */
export async function ensureFirewall(run: Run, plan: FirewallPlan, signal: AbortSignal): Promise<void> {
  await run(['iptables-restore', '--noflush', ...WAIT], { input: restoreInput(plan), signal });
  const { jumps } = await readTraces(run, plan.chain);
  for (const { table, from } of HOOKS) {
    // Insert as the first rule, because other rule sets may end with a catch-all drop.
    if (jumps[table] === 0)
      await run(['iptables', ...WAIT, '-t', table, '-I', from, '1', ...jumpRule(plan)], { signal });
  }
}

/** Removes every rule and chain of the instance and nothing else. Idempotent. */
export async function removeFirewall(run: Run, plan: Pick<FirewallPlan, 'chain' | 'tag'>, signal: AbortSignal) {
  const traces = await readTraces(run, plan.chain);
  for (const { table, from } of HOOKS) {
    const iptables = (args: string[]) => run(['iptables', ...WAIT, '-t', table, ...args], { signal });
    for (let left = traces.jumps[table]; left > 0; left -= 1) await iptables(['-D', from, ...jumpRule(plan)]);
    if (!traces.chains.includes(table)) continue;
    await iptables(['-F', plan.chain]);
    await iptables(['-X', plan.chain]);
  }
}

/** True when another rule set uses NAT, which requires forwarding. */
export async function hasForeignNat(run: Run, chain: string): Promise<boolean> {
  const { stdout } = await run(['iptables-save', '-t', 'nat'], { maxOutput: 64 * 1024 * 1024 });
  return stdout
    .split('\n')
    .some((line) => line.startsWith('-A ') && !line.includes(chain) && /-j (MASQUERADE|SNAT|DNAT|RDCTL-)/.test(line));
}

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

/** True if bridged packets pass the packet filter; other engines enable that for the whole host. */
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
 * True if forwarding may be disabled again: only if we enabled it during this boot, and only while nothing else seems to need it. Programs that start
 * later find it on and do not declare that they need it, so in doubt it stays.
 */
export function mayRestore({ changedByUs, otherBridges, foreignNat }: ForwardingUse): boolean {
  return changedByUs && otherBridges === 0 && !foreignNat;
}
