import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { Server } from 'node:net';
import { createConnection } from 'node:net';
import { basename, join, posix } from 'node:path';
import { RdError } from '../../../errors.ts';
import type { DaemonState } from '../../../process/daemon.ts';
import type { Pace } from '../../../process/pace.ts';
import { lastLines } from '../../../process/run.ts';
import type { DriverContext } from '../../driver.ts';
import type { EngineArea, Offer, ServerPlace, Shell } from '../../shell.ts';
import type { Connection } from './guest.ts';
import { GUEST_NETWORK } from './network.ts';
import { listenHere } from './offer.ts';
import type { QemuPlaces } from './places.ts';
import { guestReach } from './reach.ts';
import { CLEAR_SCRIPT, LEFTOVERS_SCRIPT, REMOVE_WAY_SCRIPT, WAY_SCRIPT, WRITE_SCRIPT } from './scripts.ts';

export interface QemuShellParts {
  places: QemuPlaces;
  guest: Connection;
  pace: Pace;
  log: DriverContext['log'];
}

/** Where engines have their files in the guest. */
const DATA = '/var/lib/rdctl/data';
const RUN = '/run/rdctl';
const LOGS = '/var/lib/rdctl/logs';

/** The guest as engines see it. Programs are units of its service manager, so that they are found, ended and logged by it. */
export function qemuShell({ places, guest, pace, log }: QemuShellParts): Shell {
  const unit = (name: string) => `rdctl-${name}.service`;
  const logOf = (name: string) => posix.join(LOGS, `${name}.log`);
  const { run } = guest;
  /** Sockets of this host that lead into the guest, by the path there. */
  const sockets = new Map<string, string>();
  guest.onReconnect(() => sockets.clear());

  async function find(name: string): Promise<DaemonState> {
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

  return {
    places: { id: places.id, data: DATA, run: RUN },
    pace,
    log,
    environment: {},
    run,
    stream: guest.stream,
    find,
    async start({ name, argv, env = {} }) {
      if ((await find(name)).state === 'running') return;
      await run(['systemctl', 'reset-failed', unit(name)], { accept: [0, 1] });
      await run(['systemctl', 'stop', unit(name)], { accept: [0, 5] });
      await run(['mkdir', '-p', LOGS]);
      // Values are secrets of gateways: they go by a file that only root of the guest reads, not by words that everyone sees.
      const file = posix.join(RUN, `${name}.env`);
      await write(
        file,
        Object.entries(env)
          .map(([key, value]) => `${key}="${value.replaceAll(/[\\"$`]/g, '\\$&')}"\n`)
          .join(''),
      );
      await run([
        'systemd-run',
        '--quiet',
        '--collect',
        `--unit=${unit(name)}`,
        '--service-type=exec',
        '--remain-after-exit',
        `--property=EnvironmentFile=${file}`,
        '--property=Delegate=yes',
        '--property=KillMode=process',
        '--property=LimitNOFILE=1048576',
        '--property=TasksMax=infinity',
        `--property=StandardOutput=append:${logOf(name)}`,
        `--property=StandardError=append:${logOf(name)}`,
        '--',
        ...argv,
      ]);
    },
    async stop(name, graceMs, signal) {
      const { state } = await find(name);
      if (state === 'none') return;
      const seconds = Math.ceil(graceMs / 1000);
      await run(['systemctl', 'set-property', '--runtime', unit(name), `TimeoutStopSec=${seconds}`], {
        accept: [0, 1],
        signal,
      });
      await run(['systemctl', 'stop', unit(name)], { accept: [0, 5], timeoutMs: graceMs + 60_000, signal });
      await run(['systemctl', 'reset-failed', unit(name)], { accept: [0, 1], signal });
    },
    async tail(name) {
      const { stdout } = await run(['tail', '-n', '40', logOf(name)], { accept: [0, 1] });
      return lastLines(stdout);
    },
    async read(path) {
      const { exitCode, stdout } = await run(['cat', '--', path], { accept: [0, 1] });
      return exitCode === 0 ? stdout : undefined;
    },
    write,
    remove: async (path) => void (await run(['rm', '-rf', '--', path])),
    makeDirectory: async (path) => void (await run(['install', '-d', '-m', '700', '--', path])),
    async makeWay(path) {
      const { stdout } = await run(['sh', '-s', '--', path], { input: WAY_SCRIPT });
      return stdout.trim() === '' ? undefined : stdout.trim();
    },
    async removeWay(path, top) {
      const { exitCode } = await run(['sh', '-s', '--', path, top], { input: REMOVE_WAY_SCRIPT, accept: [0, 1] });
      return exitCode === 0;
    },
    localSocket,
    ...guestReach(guest, places),
    offer,
    network: async () => GUEST_NETWORK,
    async leftovers(area) {
      const { stdout } = await run(['sh', '-s', '--', ...areaWords(area)], { input: LEFTOVERS_SCRIPT });
      return stdout.split('\n').filter((line) => line !== '');
    },
    async clear(area) {
      await run(['sh', '-s', '--', ...areaWords(area)], { input: CLEAR_SCRIPT, timeoutMs: 60_000 });
    },
  };

  async function write(path: string, text: string): Promise<void> {
    // The script is an argument here, because its input is the text.
    await run(['sh', '-c', WRITE_SCRIPT, 'write', path], { input: text });
  }

  async function localSocket(path: string): Promise<string> {
    const known = sockets.get(path);
    if (known !== undefined && (await answers(known))) return known;
    const local = join(places.run, socketName(path));
    if (!(await answers(local))) {
      await rm(local, { force: true });
      await guest.forward('forward', '-L', `${local}:${path}`);
    }
    sockets.set(path, local);
    return local;
  }

  async function offer(server: Server, at: ServerPlace): Promise<Offer> {
    const here = await listenHere(
      server,
      join(places.run, `offer-${createHash('sha256').update(JSON.stringify(at)).digest('hex').slice(0, 8)}`),
    );
    try {
      if ('socket' in at) {
        await run(['sh', '-s', '--', at.socket], { input: WAY_SCRIPT });
        await run(['rm', '-f', '--', at.socket]);
        await guest.forward('forward', '-R', `${at.socket}:${here.path}`);
        return { port: 0, close: () => end(`${at.socket}:${here.path}`) };
      }
      const words = `127.0.0.1:${at.port}:${here.path}`;
      const printed = await guest.forward('forward', '-R', words);
      const port = at.port === 0 ? Number(/\d+/.exec(printed)?.[0] ?? Number.NaN) : at.port;
      if (!Number.isInteger(port)) throw new RdError('ERR_PORT_IN_USE', `the guest gave no port for ${words}`);
      return { port, close: () => end(`127.0.0.1:${port}:${here.path}`) };
    } catch (error) {
      await here.close();
      throw error;
    }

    async function end(words: string): Promise<void> {
      // The connection may be gone, and the forward with it.
      await guest.forward('cancel', '-R', words).catch(() => undefined);
      await here.close();
    }
  }
}

function areaWords({ containerd, state, directories, cgroup = '' }: EngineArea): string[] {
  return [containerd, state, cgroup, ...directories];
}

/** Short, told apart, and what people know: `docker.sock`. */
function socketName(path: string): string {
  return basename(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
