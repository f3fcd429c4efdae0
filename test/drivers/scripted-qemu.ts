import { createServer } from 'node:net';
import type { GuestImage } from '../../src/drivers/guest-images/image.ts';
import type { QemuHost } from '../../src/drivers/machines/qemu/arguments.ts';
import type { Connection } from '../../src/drivers/machines/qemu/guest.ts';
import { RdError } from '../../src/errors.ts';

export const GIB = 2 ** 30;
const KEPT = 120 * 2 ** 20;
/** What the scripted QEMU runs on. */
export const HOST: QemuHost = { platform: 'linux', architecture: 'x86_64' };
const file = (name: string) => ({ name, bytes: 1, sha256: '0'.repeat(64) });

/** An image that only exists as its manifest. */
export const IMAGE: GuestImage = {
  format: 1,
  name: 'test',
  architecture: 'x86_64',
  created: '2020-01-01T00:00:00Z',
  rootBytes: 2 ** 20,
  digest: 'sha256:0',
  directory: '/images/sha256-0',
  files: { kernel: file('vmlinuz'), initrd: file('initrd'), disk: file('disk.qcow2') },
};

/** A machine as its QEMU and its guest would report it. Sizes in bytes. */
export interface ScriptedWorld {
  status: string;
  /** The status after it was told to continue. */
  cont: string;
  base: number;
  dimms: { id: string; size: number }[];
  objects: string[];
  slots: number;
  maxMemory: number;
  /** What the balloon holds, and should hold. */
  held: number;
  target: number;
  /** How far the balloon moves at each query; it never takes what the guest does not give up. */
  clock: number;
  keeps: number;
  /** Memory in use by the guest, including its kernel, and when it last reported that (seconds since 1970). */
  used: number;
  told: number;
  /** What it reported then. It reports again after this many queries. */
  word?: { 'stat-total-memory': number; 'stat-available-memory': number };
  silentLooks: number;
  looks: number;
  cpus: number;
  maxCpus: number;
  /** Processors that the guest has brought online; `Infinity`: all. */
  online: number;
  /** Whether the guest onlines hotplugged memory. */
  takesMemory: boolean;
  disk: number;
  /** What QEMU reports about writes to it. */
  writes: 'ok' | 'failed' | 'nospace';
  fileSystem: number;
  /** What resize2fs prints instead of growing it, and how far it grows at each query. */
  growsNot: string;
  growth: number;
  /** Packet filters that the guest was given, and why it takes none. */
  filters: string[];
  filtersNot: string;
  /** Error messages of QEMU for commands that it refuses. */
  refuses: Record<string, string>;
  /** Commands that are never answered. */
  hangs: string[];
  /** All commands except queries. */
  orders: { execute: string; arguments?: Record<string, unknown> }[];
}

export function scriptedWorld(changes: Partial<ScriptedWorld> = {}): ScriptedWorld {
  return {
    status: 'running',
    cont: 'running',
    base: 4 * GIB,
    dimms: [],
    objects: [],
    slots: 8,
    maxMemory: 16 * GIB,
    held: 0,
    target: 0,
    clock: GIB / 2,
    keeps: 0,
    used: GIB / 2,
    told: Date.now() / 1000,
    silentLooks: 3,
    looks: 0,
    cpus: 2,
    maxCpus: 4,
    online: Number.POSITIVE_INFINITY,
    takesMemory: true,
    disk: 20 * GIB,
    writes: 'ok',
    fileSystem: 20 * GIB,
    growsNot: '',
    growth: Number.POSITIVE_INFINITY,
    filters: [],
    filtersNot: '',
    refuses: {},
    hangs: [],
    orders: [],
    ...changes,
  };
}

/** Whether a command changes something. */
export function isOrder(command: string): boolean {
  return !command.startsWith('query') && !['qmp_capabilities', 'qom-get', 'qom-set'].includes(command);
}

export function wholeMemory({ base, dimms }: ScriptedWorld): number {
  return base + dimms.reduce((sum, { size }) => sum + size, 0);
}

/** Listens as the monitor of such a machine; `before` sees each command, and drops the connection by returning false. */
export async function scriptedMonitor(
  world: ScriptedWorld,
  path: string,
  before: (command: string) => boolean = () => true,
) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('{"QMP": {}}\n');
    let rest = '';
    socket.on('data', (data: Buffer) => {
      const lines = (rest + data.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines.filter(Boolean)) {
        const asked: { execute: string; arguments?: Record<string, unknown>; id: number } = JSON.parse(line);
        const { execute, id, arguments: given } = asked;
        if (execute !== 'qmp_capabilities' && !before(execute)) return void socket.destroy();
        if (world.hangs.includes(execute)) return;
        if (isOrder(execute)) {
          world.orders.push({ execute, ...(given ? { arguments: given } : {}) });
        }
        let answer: object;
        try {
          const refusal = world.refuses[execute];
          if (refusal !== undefined) throw new Error(refusal);
          answer = { return: answerOf(world, execute, given ?? {}) };
        } catch (error) {
          answer = { error: { class: 'GenericError', desc: error instanceof Error ? error.message : '' } };
        }
        socket.write(`${JSON.stringify({ ...answer, id })}\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

function answerOf(world: ScriptedWorld, execute: string, given: Record<string, unknown>): unknown {
  const whole = wholeMemory(world);
  switch (execute) {
    case 'query-status':
      return { status: world.status };
    case 'query-balloon': {
      const most = Math.max(world.held, whole - world.keeps);
      const goal = Math.min(world.target, most);
      const step = Math.min(world.clock, Math.abs(goal - world.held));
      world.held += goal > world.held ? step : -step;
      return { actual: whole - world.held };
    }
    case 'query-memory-size-summary':
      return { 'base-memory': world.base, 'plugged-memory': whole - world.base };
    case 'query-memory-devices':
      return world.dimms.map(({ id, size }) => ({ type: 'dimm', data: { id, size } }));
    case 'query-cpus-fast':
      return Array.from({ length: world.cpus }, (_, index) => ({ 'cpu-index': index }));
    case 'query-hotpluggable-cpus':
      return Array.from({ length: world.maxCpus }, (_, at) => world.maxCpus - 1 - at).map((core) => ({
        type: 'max-x86_64-cpu',
        'vcpus-count': 1,
        props: { 'core-id': core, 'thread-id': 0, 'node-id': 0, 'socket-id': 0 },
        ...(core < world.cpus ? { 'qom-path': `/machine/unattached/device[${core}]` } : {}),
      }));
    case 'query-block':
      return [
        { device: 'disk', inserted: { image: { 'virtual-size': 1 } } },
        { device: 'data', 'io-status': world.writes, inserted: { image: { 'virtual-size': world.disk } } },
      ];
    case 'qom-get':
      return given.property === 'memory'
        ? { size: world.base, slots: world.slots, 'max-size': world.maxMemory }
        : { stats: wordOf(world), 'last-update': Math.floor(world.told) };
    case 'balloon':
      world.target = Math.max(0, whole - Number(given.value));
      return {};
    case 'object-add': {
      const id = String(given.id);
      if (world.objects.includes(id)) throw new Error(`attempt to add duplicate property '${id}'`);
      world.objects.push(id);
      return {};
    }
    case 'object-del': {
      const id = String(given.id);
      if (!world.objects.includes(id)) throw new Error(`object '${id}' not found`);
      if (world.dimms.some((dimm) => `${dimm.id}-host` === id)) throw new Error(`object '${id}' is in use`);
      world.objects = world.objects.filter((each) => each !== id);
      return {};
    }
    case 'device_add':
      return plug(world, given);
    case 'block_resize':
      // Like QEMU, which accepts a smaller size.
      world.disk = Number(given.size);
      return {};
    case 'cont':
      world.status = world.cont;
      return {};
    default:
      return {};
  }
}

/** What the guest last reported about its memory, however old that is. */
function wordOf(world: ScriptedWorld): ScriptedWorld['word'] {
  world.looks += 1;
  if (world.word !== undefined && world.looks % world.silentLooks !== 0) return world.word;
  if (world.word !== undefined) world.told += 1;
  const total = totalOf(world);
  world.word = { 'stat-total-memory': total, 'stat-available-memory': total - (world.used - KEPT) };
  return world.word;
}

function totalOf(world: ScriptedWorld): number {
  return (world.takesMemory ? wholeMemory(world) : world.base) - world.held - KEPT;
}

function plug(world: ScriptedWorld, given: Record<string, unknown>): object {
  if (given.driver !== 'pc-dimm') {
    if (given['core-id'] !== world.cpus) throw new Error(`CPU ${String(given['core-id'])} is not the next one`);
    world.cpus += 1;
    return {};
  }
  const id = String(given.id);
  const add = world.orders.findLast(
    ({ execute, arguments: made }) => execute === 'object-add' && made?.id === given.memdev,
  );
  if (world.dimms.some((dimm) => dimm.id === id)) throw new Error(`Duplicate device ID '${id}'`);
  if (world.dimms.length >= world.slots) throw new Error('no free slot');
  world.dimms.push({ id, size: Number(add?.arguments?.size) });
  if (wholeMemory(world) > world.maxMemory) throw new Error('not enough space');
  return {};
}

/** The programs that a guest needs for live changes. */
export function scriptedGuest(world: ScriptedWorld): Pick<Connection, 'run'> {
  return {
    async run([program = '', ...args], { input = '' } = {}) {
      const text = typeof input === 'string' ? input : '';
      const stdout = said(world, [program, ...args].join(' '), text);
      if (stdout === undefined) throw new RdError('ERR_DRIVER_FAILED', `${program} is not scripted`);
      return { exitCode: 0, stdout, stderr: '' };
    },
  };
}

function said(world: ScriptedWorld, command: string, input: string): string | undefined {
  if (command.startsWith('date')) return `${Math.floor(Date.now() / 1000)}\n`;
  if (command.startsWith('blockdev')) return `${world.disk}\n`;
  if (input.includes('resize2fs')) {
    if (world.growsNot !== '') return `failed ${world.fileSystem}\n${world.growsNot}\n`;
    world.fileSystem = Math.min(world.disk, world.fileSystem + world.growth);
    return `${world.fileSystem < world.disk ? 'going' : 'done'} ${world.fileSystem}\n`;
  }
  if (command.includes('iptables-restore')) {
    if (world.filtersNot !== '') throw new RdError('ERR_DRIVER_FAILED', world.filtersNot);
    world.filters.push(input);
    return '';
  }
  if (input.includes('MemTotal')) return `MemTotal:  ${totalOf(world) / 1024} kB\n`;
  if (input.includes('NPROCESSORS')) return `${Math.min(world.cpus, world.online)}\n`;
  return undefined;
}
