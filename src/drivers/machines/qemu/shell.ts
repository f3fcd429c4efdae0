import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import type { Clock } from '../../../os/clock.ts';
import type { DaemonState } from '../../../os/daemon.ts';
import { isThere } from '../../../os/regular-file.ts';
import { lastLines, type RunOptions, type RunResult } from '../../../os/run.ts';
import { acceptsConnections } from '../../../os/socket.ts';
import type { DriverContext } from '../../driver.ts';
import type { Arrangement, EngineArea, Shell } from '../../shell.ts';
import { fileReader } from './file-reader.ts';
import { type Connection, missingProgram } from './guest.ts';
import { GUEST_LOGS, LONGEST_SOCKET, type QemuPlaces } from './places.ts';
import type { PortConflict } from './ports/conflict.ts';
import type { ClaimPort } from './ports/forwarder.ts';
import { guestOffers, guestReach } from './reach.ts';
import { CLEAR_SCRIPT, END, LEFTOVERS_SCRIPT, LINK_SCRIPT, MISSING, PLACE_SCRIPT, STOP_SCRIPT } from './scripts.ts';
import { GUEST_NETWORK } from './setup-scripts.ts';

export interface QemuShellParts {
  places: QemuPlaces;
  guest: Connection;
  /** Environment of the service. */
  environment: Shell['environment'];
  claim: ClaimPort;
  portConflict: PortConflict;
  hold: Shell['hold'];
  /** Returns the number of connections held to a socket of this host. */
  held(path: string): number;
  clock: Clock;
  log: DriverContext['log'];
}

/** Root of the engines' files in the guest. */
const DATA = '/var/lib/rdctl/data';
const RUN = '/run/rdctl';
/** Default socket locations for clients in the guest. */
const DEFAULT_SOCKETS: Readonly<Record<string, string>> = {
  'docker.sock': '/run/docker.sock',
  'containerd.sock': '/run/containerd/containerd.sock',
};
const EMPTY_ARRANGEMENT: Arrangement = { absent: [], directories: [], files: [] };
/** Extra time for the setup before a program runs. */
const START_MARGIN_MS = 30_000;
/** Extra time for a kill and for a slow guest. */
const STOP_MARGIN_MS = 60_000;
/** Seconds to clean up after an engine, then until the cleanup itself is killed, and a margin for the caller. */
const CLEAR_S = 60;
const CLEAR_KILL_S = 5;
const CLEAR_MARGIN_MS = 10_000;

/** Creates the shell that presents the guest to engines. Programs run as systemd units, so that systemd can find, stop and log them. */
export function qemuShell({
  places,
  guest,
  environment,
  claim,
  portConflict,
  hold,
  held,
  clock,
  log,
}: QemuShellParts): Shell & { release(): void } {
  const unit = (name: string) => `rdctl-${name}.service`;
  const logOf = (name: string) => posix.join(GUEST_LOGS, `${name}.log`);
  const environmentOf = (name: string) => posix.join(RUN, `${name}.env`);
  const { run } = guest;
  /** Host sockets forwarded to the guest, by guest path. */
  const sockets = new Map<string, string>();
  const files = fileReader(guest);
  /** Running programs that systemd has named. */
  const known = new Map<string, { pid: number; started: string }>();
  guest.onReconnect(async () => {
    sockets.clear();
    known.clear();
  });

  async function find(name: string): Promise<DaemonState> {
    const program = known.get(name);
    if (program && (await startTime(program.pid)) === program.started) return { state: 'running', pid: program.pid };
    known.delete(name);
    const found = await querySystemd(name);
    const started = found.state === 'running' ? await startTime(found.pid) : undefined;
    if (found.state === 'running' && started !== undefined) known.set(name, { pid: found.pid, started });
    return found;
  }

  /** Returns the start time of the process, in ticks of the guest, or undefined once it has ended. A pid alone may have been reused. */
  async function startTime(pid: number): Promise<string | undefined> {
    const stat = await files.read(`/proc/${pid}/stat`);
    const [state, ...rest] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
    return state === 'Z' || state === 'X' ? undefined : rest[18];
  }

  async function querySystemd(name: string): Promise<DaemonState> {
    const { stdout } = await run([
      'systemctl',
      'show',
      '--property=LoadState,ActiveState,SubState,MainPID',
      unit(name),
    ]);
    const facts = new Map(
      stdout.split('\n').map((line): [string, string] => [line.split('=')[0] ?? '', line.split('=')[1] ?? '']),
    );
    if (facts.get('LoadState') !== 'loaded') return { state: 'none' };
    const pid = Number(facts.get('MainPID'));
    return pid > 0 ? { state: 'running', pid } : { state: 'ended' };
  }

  const shell: Shell & { release(): void } = {
    release: files.end,
    places: { id: places.id, data: DATA, run: RUN },
    clock,
    log,
    environment,
    run,
    stream: guest.stream,
    find,
    async start(programs, { before = EMPTY_ARRANGEMENT, signal } = {}) {
      const words = programs.flatMap(({ name, argv, within = [], readyMs = 0 }) => {
        const line = [...within, ...argv];
        const facts = [unit(name), environmentOf(name), logOf(name), Math.ceil(readyMs / 1000), line.length];
        return ['program', ...facts.map(String), ...line];
      });
      // Values contain gateway secrets: pass them in a root-only file, not on a command line that every process can read.
      const environments = programs.map(({ name, env = {} }) => ({
        path: environmentOf(name),
        text: environmentText(env),
      }));
      const longest = Math.max(0, ...programs.map(({ readyMs = 0 }) => readyMs));
      const { exitCode, stderr } = await place({ ...before, files: [...before.files, ...environments] }, words, {
        timeoutMs: longest + START_MARGIN_MS,
        accept: [0, MISSING],
        ...(signal ? { signal } : {}),
      });
      if (exitCode === MISSING) throw missingProgram(stderr);
    },
    async stop(name, graceMs, signal) {
      const seconds = Math.ceil(graceMs / 1000);
      const words = [unit(name), environmentOf(name), String(seconds)];
      await run(['sh', '-s', '--', ...words], { input: STOP_SCRIPT, timeoutMs: graceMs + STOP_MARGIN_MS, signal });
    },
    async tail(name) {
      const { stdout } = await run(['tail', '-n', '40', logOf(name)], { accept: [0, 1] });
      return lastLines(stdout);
    },
    read: files.read,
    exists: async (path) => (await files.read(path)) !== undefined,
    arrange: async (arrangement) => void (await place(arrangement)),
    write: async (path, text) => void (await place({ ...EMPTY_ARRANGEMENT, files: [{ path, text }] })),
    remove: async (path) => void (await run(['rm', '-rf', '--one-file-system', '--', path])),
    async listens(path) {
      const { stdout } = await run(['ss', '--no-header', '--unix', '--listening', 'src', `unix:${path}`]);
      return stdout.trim() !== '';
    },
    localSocket,
    async hold(path, hello, listen) {
      const local = sockets.get(path);
      if (local !== undefined) await hold(local, hello, listen);
    },
    async holds(path) {
      const local = sockets.get(path);
      return local !== undefined && holdsLocal(local);
    },
    ...guestReach(guest, places, claim, portConflict),
    offer: guestOffers(places, guest, claim),
    network: async () => GUEST_NETWORK,
    async leftovers(area) {
      const { stdout } = await run(['sh', '-s', '--', ...areaArguments(area)], { input: LEFTOVERS_SCRIPT });
      return stdout.split('\n').filter((line) => line !== '');
    },
    async clear(area) {
      // The script must end before the caller's deadline: a late run would remove files that the next engine created.
      const limit = ['timeout', `--kill-after=${CLEAR_KILL_S}`, String(CLEAR_S)];
      await run([...limit, 'sh', '-s', '--', ...areaArguments(area)], {
        input: CLEAR_SCRIPT,
        timeoutMs: (CLEAR_S + CLEAR_KILL_S) * 1000 + CLEAR_MARGIN_MS,
      });
    },
  };

  function place(
    { absent, directories, files }: Arrangement,
    programs: readonly string[] = [],
    options: Pick<RunOptions, 'timeoutMs' | 'signal' | 'accept'> = {},
  ): Promise<RunResult> {
    const texts = files.map(({ path, text }) => ({ path, bytes: Buffer.from(text) }));
    const words = [
      ...absent.flatMap((path) => ['absent', path]),
      ...directories.flatMap((path) => ['directory', path]),
      ...texts.flatMap(({ path, bytes }) => ['file', path, String(bytes.length)]),
      ...programs,
    ];
    // The script is an argument, because standard input carries the file contents.
    const input = Buffer.concat([...texts.map(({ bytes }) => bytes), Buffer.from(`${END}\n`)]);
    return run(['sh', '-c', PLACE_SCRIPT, 'place', ...words], { ...options, input });
  }

  const holdsLocal = async (local: string) => held(local) > 0 && (await isThere(local));

  async function localSocket(path: string): Promise<string> {
    const known = sockets.get(path);
    // A held connection goes all the way into the guest; another one, only to check, would cost as much as a request.
    if (known !== undefined && ((await holdsLocal(known)) || (await acceptsConnections({ path: known })))) return known;
    const local = join(places.run, socketName(path));
    if (!(await acceptsConnections({ path: local }))) {
      await rm(local, { force: true });
      await guest.forward('forward', '-L', `${local}:${path}`);
    }
    const defaultPath = DEFAULT_SOCKETS[basename(path)];
    if (defaultPath !== undefined) await run(['sh', '-s', '--', path, defaultPath], { input: LINK_SCRIPT });
    sockets.set(path, local);
    return local;
  }

  return shell;
}

function environmentText(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .map(([key, value]) => `${key}="${value.replaceAll(/[\\"$`]/g, '\\$&')}"\n`)
    .join('');
}

function areaArguments({ containerd, state, directories, cgroup = '' }: EngineArea): string[] {
  return [containerd, state, cgroup, ...directories];
}

/** Returns a readable socket name derived from the path, such as `moby-docker.sock`; otherwise a hash of the same length. */
export function socketName(path: string): string {
  const name = posix.relative(RUN, path).replaceAll('/', '-');
  if (/^[\w.-]+$/.test(name) && !name.startsWith('.') && name.length <= LONGEST_SOCKET.length) return name;
  return `${createHash('sha256').update(path).digest('hex').slice(0, 16)}.sock`;
}
