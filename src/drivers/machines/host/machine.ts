import { RdError } from '../../../errors.ts';
import { bootId } from '../../../process/proc.ts';
import type { DriverContext, MachineDriver, MachineSpec, MachineStatus } from '../../driver.ts';
import type { EngineNetwork } from '../../shell.ts';
import type { Run } from './commands.ts';
import { completeness, ensureFirewall, othersTranslate, readTraces, removeFirewall } from './firewall.ts';
import type { Forwarding } from './forwarding.ts';
import { mayRestore } from './forwarding.ts';
import type { Link } from './links.ts';
import { linksWithin, readLinks, readRoutes } from './links.ts';
import type { MachineRecord } from './machine-record.ts';
import { readMachineRecord, writeMachineRecord } from './machine-record.ts';
import type { HostPlaces } from './places.ts';
import { removeRuntime } from './runtime.ts';
import type { Range } from './subnet.ts';
import { bridgeAddress, choosePool, formatRange, overlaps, parseRange } from './subnet.ts';

/** The machine that is this host: what it adds to it is a bridge, its rules and, where it was off, forwarding. */
export interface HostMachine extends MachineDriver {
  /** Throws `ERR_DRIVER_FAILED` while the machine is off. */
  network(): Promise<EngineNetwork>;
}

export interface HostMachineParts {
  places: HostPlaces;
  run: Run;
  forwarding: Forwarding;
  log: DriverContext['log'];
}

export function hostMachine({ places, run, forwarding, log }: HostMachineParts): HostMachine {
  const { record: file, bridge, chain, tag } = places;

  async function observe(): Promise<MachineStatus> {
    const record = await readMachineRecord(file);
    if (record === undefined) return { state: 'absent' };
    if (record === 'damaged') {
      return {
        state: 'broken',
        reason: 'RecordDamaged',
        message: `${file} cannot be understood; a start writes it anew`,
      };
    }
    if (record.power === 'off') return { state: 'off' };
    const missing = await missingParts(record);
    if (missing === 'everything') return { state: 'off' };
    if (missing.length === 0) return { state: 'on', spec: record.spec };
    return {
      state: 'broken',
      reason: 'NetworkIncomplete',
      message: `of the container network is missing: ${missing.join(', ')}`,
    };
  }

  /** After a restart of the host everything is missing, which is no damage. */
  async function missingParts({ pool }: MachineRecord): Promise<string[] | 'everything'> {
    const [links, traces, forwards] = await Promise.all([readLinks(run), readTraces(run, chain), forwarding.read()]);
    const link = links.find(({ name }) => name === bridge);
    const rules = completeness(traces);
    if (!link && rules === 'none') return 'everything';
    return [
      ...(isReady(link, pool) ? [] : [`the bridge ${bridge}`]),
      ...(rules === 'whole' ? [] : ['packet filter rules']),
      ...(forwards ? [] : ['forwarding (net.ipv4.ip_forward)']),
    ];
  }

  async function start(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const known = await readMachineRecord(file);
    const before = known === 'damaged' ? undefined : known;
    const links = await readLinks(run);
    const pool = await poolFor(before, links);
    const turnedOn = await forwardingMark(before);
    const record: MachineRecord = { power: 'on', spec, pool: formatRange(pool), ...turnedOn };
    await writeMachineRecord(file, record);

    if (!links.some(({ name }) => name === bridge))
      await run(['ip', 'link', 'add', bridge, 'type', 'bridge'], { signal });
    for (const stale of staleAddresses(links, record.pool)) {
      await run(['ip', 'address', 'delete', stale, 'dev', bridge], { signal });
    }
    await run(['ip', 'address', 'replace', bridgeAddress(pool), 'dev', bridge], { signal });
    await run(['ip', 'link', 'set', bridge, 'up'], { signal });
    const others = otherBridges(links, pool).map(({ name }) => name);
    await ensureFirewall(run, { chain, tag, pool: record.pool, otherBridges: others }, signal);
    if (!(await forwarding.read())) await forwarding.write(true);
    log('info', 'container network is up', { bridge, pool: record.pool });
  }

  /** The range of before, so that networks which containers know stay valid, unless something else uses it now. */
  async function poolFor(before: MachineRecord | undefined, links: readonly Link[]): Promise<Range> {
    const routes = await readRoutes(run);
    const recorded = before && parseRange(before.pool);
    const own = recorded
      ? linksWithin(links, recorded)
          .filter(isOwnOrEngineBridge)
          .map(({ addresses }) => addresses)
      : [];
    const ownRanges = own.flat().flatMap((address) => parseRange(address) ?? []);
    const taken = routes.filter(
      (route) => !ownRanges.some((range) => route.prefix >= range.prefix && overlaps(route, range)),
    );
    if (recorded && !taken.some((route) => overlaps(route, recorded))) return recorded;
    if (recorded)
      log('warn', 'the range of the container network is used by something else now', { pool: before.pool });
    const pool = choosePool(taken, Number.parseInt(places.id, 16));
    if (pool) return pool;
    throw new RdError('ERR_DRIVER_TERMINAL', 'no private IPv4 range of 65,536 addresses is free for containers', {
      advice: 'Look at `ip route`: a route to all of 10.0.0.0/8 and 172.16.0.0/12 leaves no room.',
    });
  }

  function isOwnOrEngineBridge({ name }: Link): boolean {
    return name === bridge || ENGINE_BRIDGE.test(name);
  }

  /** Recorded before the switch is touched: a crash in between must not make us forget that it was ours. */
  async function forwardingMark(before: MachineRecord | undefined): Promise<Pick<MachineRecord, 'forwardingBoot'>> {
    const boot = await bootId();
    const ours = !(await forwarding.read()) || before?.forwardingBoot === boot;
    return ours ? { forwardingBoot: boot } : {};
  }

  function staleAddresses(links: readonly Link[], pool: string): string[] {
    const range = parseRange(pool);
    const wanted = range && bridgeAddress(range);
    return (links.find(({ name }) => name === bridge)?.addresses ?? []).filter((address) => address !== wanted);
  }

  async function stop(signal: AbortSignal): Promise<void> {
    const known = await readMachineRecord(file);
    const record = known === 'damaged' ? undefined : known;
    const pool = record && parseRange(record.pool);
    await removeFirewall(run, { chain, tag }, signal);
    const links = await readLinks(run);
    // dockerd leaves the bridges of networks that were made in it.
    const leftovers = pool ? linksWithin(links, pool).filter(({ name }) => ENGINE_BRIDGE.test(name)) : [];
    const own = links.filter(({ name }) => name === bridge);
    for (const { name } of [...own, ...leftovers]) await run(['ip', 'link', 'delete', name], { signal });
    await restoreForwarding(record, signal);
    await removeRuntime(places);
    if (record) await writeMachineRecord(file, { power: 'off', spec: record.spec, pool: record.pool });
    log('info', 'container network is gone', { bridge });
  }

  async function restoreForwarding(record: MachineRecord | undefined, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const changedByUs = record?.forwardingBoot === (await bootId());
    if (!changedByUs || !(await forwarding.read())) return;
    const bridges = (await readLinks(run)).filter((link) => link.bridge);
    const use = { changedByUs, otherBridges: bridges.length, othersTranslate: await othersTranslate(run, chain) };
    if (mayRestore(use)) await forwarding.write(false);
    else log('info', 'forwarding stays on because something else may need it', { ...use });
  }

  return {
    observe,
    async perform(step, signal) {
      if (step.do === 'stop') await stop(signal);
      // Nothing of the spec has an effect here, so adjusting is starting: it repairs and records.
      else await start(step.spec, signal);
    },
    async network() {
      const record = await readMachineRecord(file);
      if (record === undefined || record === 'damaged' || record.power === 'off') {
        throw new RdError('ERR_DRIVER_FAILED', 'the container network is not up', {
          advice: 'Start the machine first.',
        });
      }
      return { bridge, pool: record.pool };
    },
  };

  function otherBridges(links: readonly Link[], pool: Range): Link[] {
    const ours = new Set(linksWithin(links, pool).map(({ name }) => name));
    return links.filter((link) => link.bridge && link.name !== bridge && !ours.has(link.name));
  }
}

/** Name that engines give to the bridge of a network: the first 12 digits of its id. */
const ENGINE_BRIDGE = /^br-[0-9a-f]{12}$/;

function isReady(link: Link | undefined, pool: string): boolean {
  const range = parseRange(pool);
  return link?.up === true && range !== undefined && link.addresses.includes(bridgeAddress(range));
}
