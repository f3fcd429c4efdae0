import { rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { RdError } from '../../../errors.ts';
import { isObject, parseJson } from '../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import { unrecordedError } from '../../../os/daemon.ts';
import { parsePlace, placeOf, placeStatus } from '../../../os/directory-identity.ts';
import type { ProcessEntry } from '../../../os/process-list.ts';
import { bootId, readProcesses } from '../../../os/process-table.ts';
import type { DriverContext, MachineDriver, MachineSpec, MachineStatus } from '../../driver.ts';
import type { EngineNetwork, Run } from '../../shell.ts';
import { parseMachineSpec } from '../shared/machine-spec.ts';
import {
  bridgesAreFiltered,
  completeness,
  ensureFirewall,
  type Forwarding,
  hasForeignNat,
  mayRestore,
  readTraces,
  removeFirewall,
} from './firewall.ts';
import {
  bridgeAddress,
  formatRange,
  isReady,
  type Link,
  otherBridges,
  overlaps,
  ownBridges,
  parseRange,
  poolFor,
  type Range,
  readLinks,
  readRoutes,
  staleAddresses,
} from './network.ts';
import { type HostPlaces, makeRuntime, removeRuntime } from './places.ts';

/** This host as the machine: adds a bridge, its rules and, if it was off, forwarding. */
export interface HostMachine extends MachineDriver {
  /** Returns the network for containers. Throws `ERR_DRIVER_FAILED` while the machine is off. */
  network(): Promise<EngineNetwork>;
}

export interface HostMachineParts {
  places: HostPlaces;
  run: Run;
  forwarding: Forwarding;
  /** Returns the file content in which the engine keeps the ids of its bridge networks; empty without one. */
  networks(): Promise<string>;
  log: DriverContext['log'];
}

export function hostMachine({ places, run, forwarding, networks, log }: HostMachineParts): HostMachine {
  const { record: file, bridge, chain, tag } = places;

  async function observe(): Promise<MachineStatus> {
    const record = await readMachineRecord(file);
    if (record === undefined) return { state: 'absent' };
    if (record === 'damaged') {
      return { state: 'broken', reason: 'RecordDamaged', message: `${file} cannot be parsed` };
    }
    if (record.power === 'off' || record.copied) return { state: 'off' };
    const missing = await missingParts(record.pool);
    if (missing === 'everything') return { state: 'off' };
    if (missing.length === 0) return { state: 'on', spec: record.spec };
    return {
      state: 'on',
      spec: record.spec,
      repair: `parts of the container network are missing: ${missing.join(', ')}`,
    };
  }

  /** Lists missing parts. After a host reboot everything is missing, which is not a defect. */
  async function missingParts(pool: Range): Promise<string[] | 'everything'> {
    const [links, traces, forwards, filtered] = await Promise.all([
      readLinks(run),
      readTraces(run, chain),
      forwarding.read(),
      bridgesAreFiltered(),
    ]);
    const link = links.find(({ name }) => name === bridge);
    const rules = completeness(traces, filtered);
    if (!link && rules === 'none') return 'everything';
    return [
      ...(isReady(link, pool) ? [] : [`the bridge ${bridge}`]),
      ...(rules === 'whole' ? [] : ['packet filter rules']),
      ...(forwards ? [] : ['forwarding (net.ipv4.ip_forward)']),
    ];
  }

  async function start(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const known = await readMachineRecord(file);
    const [links, routes, ids] = await Promise.all([readLinks(run), readRoutes(run), networks()]);
    if (known !== undefined && known !== 'damaged' && known.copied) refuseBesideOriginal(links, known.pool);
    // Host-wide names derive from the directory: do not touch resources of another directory with the same name.
    if (known === undefined) await refuseUnrecorded(file);
    const before = ownRecord(known);
    const pool = poolFor(before?.pool, links, routes, bridge, ids, Number.parseInt(places.id, 16));
    if (!pool) throw noFreeRange();
    if (before && before.pool.address !== pool.address) {
      log('warn', 'another network now uses the range of the container network', { range: formatRange(before.pool) });
    }
    // Record first: the next start and stop must know what a crash leaves.
    await makeRuntime(places);
    await writeMachineRecord(file, { power: 'on', spec, pool, ...(await forwardingMark(before)) });

    const exists = links.some(({ name }) => name === bridge);
    if (!exists) await run(['ip', 'link', 'add', bridge, 'type', 'bridge'], { signal });
    for (const stale of staleAddresses(links, bridge, pool)) {
      await run(['ip', 'address', 'delete', stale, 'dev', bridge], { signal });
    }
    await run(['ip', 'address', 'replace', bridgeAddress(pool), 'dev', bridge], { signal });
    await run(['ip', 'link', 'set', bridge, 'up'], { signal });
    const others = otherBridges(links, bridge, ids).map(({ name }) => name);
    const bridgeFilter = await bridgesAreFiltered();
    await ensureFirewall(run, { chain, tag, pool: formatRange(pool), otherBridges: others, bridgeFilter }, signal);
    if (!(await forwarding.read())) await forwarding.write(true);
    const missing = await missingParts(pool);
    if (missing.length > 0) throw networkIncomplete(missing);
    log('info', 'container network is up', { bridge, pool: formatRange(pool) });
  }

  /** Returns the mark of forwarding to record before it is enabled: after a crash we must know that we enabled it. */
  async function forwardingMark(before: MachineRecord | undefined): Promise<Pick<MachineRecord, 'forwardingBoot'>> {
    const boot = bootId();
    const ours = before?.forwardingBoot === boot || !(await forwarding.read());
    return ours ? { forwardingBoot: boot } : {};
  }

  async function stop(signal: AbortSignal): Promise<void> {
    const record = ownRecord(await readMachineRecord(file));
    await removeFirewall(run, { chain, tag }, signal);
    for (const { name } of ownBridges(await readLinks(run), bridge, await networks())) {
      await run(['ip', 'link', 'delete', name], { signal });
    }
    await restoreForwarding(record, signal);
    await removeRuntime(places);
    if (record) await recordOff(record);
    else await rm(file, { force: true });
    log('info', 'container network is removed', { bridge });
  }

  /**
   * Records that the machine is off. Best effort, for the next start only: an observation sees that nothing is there, so a full disk does not block a
   * stop.
   */
  async function recordOff({ spec, pool }: MachineRecord): Promise<void> {
    await writeMachineRecord(file, { power: 'off', spec, pool }).catch((error: unknown) => {
      log('warn', 'the machine is off, but its record could not be updated', { error });
    });
  }

  async function restoreForwarding(record: MachineRecord | undefined, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const changedByUs = record?.forwardingBoot === bootId();
    if (!changedByUs || !(await forwarding.read())) return;
    const bridges = (await readLinks(run)).filter((link) => link.bridge);
    const use = { changedByUs, otherBridges: bridges.length, foreignNat: await hasForeignNat(run, chain) };
    if (mayRestore(use)) await forwarding.write(false);
    else log('info', 'forwarding stays on because something else may need it', { ...use });
  }

  return {
    observe,
    async perform(step, signal) {
      if (step.do === 'stop') await stop(signal);
      // No part of the spec has an effect here, so adjusting equals starting: it repairs and records.
      else await start(step.spec, signal);
    },
    async network() {
      const record = await readMachineRecord(file);
      if (record !== undefined && record !== 'damaged' && record.power === 'on' && !record.copied) {
        return { bridge, pool: formatRange(record.pool), shared: true };
      }
      throw new RdError('ERR_DRIVER_FAILED', 'the container network is not up', { advice: 'Start the machine first.' });
    },
  };
}

/** Returns our record; undefined for a damaged one, and for one that names resources of another directory. */
function ownRecord(record: MachineRecord | 'damaged' | undefined): MachineRecord | undefined {
  return record === 'damaged' || record?.copied ? undefined : record;
}

/**
 * Refuses to start beside an unrecorded engine.
 * @throws RdError `ERR_DRIVER_TERMINAL` when an engine started in this directory runs without a record.
 */
async function refuseUnrecorded(file: string): Promise<void> {
  const within = `${dirname(file)}/`;
  const isEngine = ({ argv: [program = '', ...args] }: ProcessEntry) =>
    /^(?:dockerd|containerd)$/.test(basename(program)) && args.some((arg) => arg.includes(within));
  const entry = (await readProcesses()).find(isEngine);
  if (entry) throw unrecordedError(entry, file);
}

/** Refuses to start beside the original of copied engine data, whose networks have the same names and ranges. */
function refuseBesideOriginal(links: readonly Link[], pool: Range): void {
  const isWithin = (address: string) => {
    const range = parseRange(address);
    return range !== undefined && overlaps(range, pool);
  };
  const up = links.filter(({ addresses }) => addresses.some(isWithin)).map(({ name }) => name);
  if (up.length === 0) return;
  throw new RdError(
    'ERR_DRIVER_TERMINAL',
    `these directories are a copy, and the container networks of the original are up (${up.join(', ')} in ${formatRange(pool)})`,
    { advice: 'Stop what runs in the original with `rdctl shutdown`, then try again.' },
  );
}

function noFreeRange(): RdError {
  return new RdError('ERR_DRIVER_TERMINAL', 'no private IPv4 range of 65,536 addresses is free for containers', {
    advice: 'Look at `ip route`: routes to all of 10.0.0.0/8 and 172.16.0.0/12 leave no room.',
  });
}

function networkIncomplete(missing: readonly string[] | 'everything'): RdError {
  const what = missing === 'everything' ? 'all of it' : missing.join(', ');
  return new RdError(
    'ERR_DRIVER_FAILED',
    `the container network does not stay up; missing right after its creation: ${what}`,
    {
      advice: 'Look for a program on this host that removes foreign bridges or packet filter rules.',
    },
  );
}

/** The machine record: written before anything is created, and again after everything is removed. */
export interface MachineRecord {
  power: 'on' | 'off';
  spec: MachineSpec;
  /** IPv4 range for containers of this instance. */
  pool: Range;
  /** The boot id in which we enabled forwarding; absent when it was already on. */
  forwardingBoot?: string;
  /** Copied from another directory: the resources it names are not ours. */
  copied?: true;
}

/** Reads the record. Undefined when there is none; `damaged` when it cannot be parsed. */
export async function readMachineRecord(file: string): Promise<MachineRecord | 'damaged' | undefined> {
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  const value = parseJson(text);
  const record = parse(value);
  if (!record) return 'damaged';
  const at = isObject(value) ? parsePlace(value.at) : undefined;
  return placeStatus(at, dirname(file)) === 'copied' ? { ...record, copied: true } : record;
}

export async function writeMachineRecord(file: string, record: Omit<MachineRecord, 'copied'>): Promise<void> {
  const pool = formatRange(record.pool);
  await writeFileAtomic(file, `${JSON.stringify({ ...record, pool, at: placeOf(dirname(file)) }, null, 2)}\n`);
}

function parse(value: unknown): MachineRecord | undefined {
  if (!isObject(value)) return undefined;
  const { power, forwardingBoot } = value;
  const spec = parseMachineSpec(value.spec);
  const pool = typeof value.pool === 'string' ? parseRange(value.pool) : undefined;
  if (!spec || (power !== 'on' && power !== 'off') || !pool) return undefined;
  return { power, pool, spec, ...(typeof forwardingBoot === 'string' ? { forwardingBoot } : {}) };
}
