import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { type RunOptions, type RunResult, run } from '../../src/os/run.ts';
import { callEngine } from './engine-client.ts';
import { commandOf } from './tool-program.ts';

/** Turns its namespaces into an empty host, with an init process that exits when its input ends. */
const FIRST_PROCESS = `set -e
mkdir -p "$0/lib" "$0/etc" "$0/work"
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mount --bind "$0/lib" /var/lib
mount -t overlay -o "lowerdir=/etc,upperdir=$0/etc,workdir=$0/work" overlay /etc
ip link set lo up
echo ready
exec docker-init -- cat`;

/** Everything that a system docker or anyone else may have on a host's network, including our own bridges and rules. */
const NETWORK_STATE = `set -e
echo '# links'; ip -json -details address show; echo
echo '# rules4'; iptables-save
echo '# rules6'; ip6tables-save
echo '# routes'; ip -4 route show table all; ip -6 route show table all
echo '# policy'; ip -4 rule; ip -6 rule
echo '# sysctls'
for key in net/ipv4/ip_forward net/ipv6/conf/all/forwarding net/bridge net/ipv4/conf/all net/ipv4/conf/docker0 net/ipv6/conf/docker0; do
  [ ! -e /proc/sys/$key ] || find /proc/sys/$key -type f -not -name '*_lifetime' -not -name stable_secret -print0 | xargs -0 grep -H . || true
done`;

/** A host of its own with the programs of this one: its own network, processes, /run, /var/lib and /etc. */
export interface OtherHost {
  /** For files of the test; the same path inside and outside. */
  folder: string;
  /** The path on this host of a file there. */
  path(there: string): string;
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** The built tool on a home in `folder`. */
  rdctl(home: string, ...argv: string[]): Promise<RunResult>;
  /** Starts the system docker with default settings, and waits until it answers. */
  startDocker(): Promise<void>;
  stopDocker(): Promise<void>;
  networkState(): Promise<Record<string, string>>;
  /** The response of a web server in a container there; an error when there is none. */
  get(address: string): Promise<string>;
  close(): Promise<void>;
}

/** The docker of the system. */
export const SYSTEM_SOCKET = '/run/docker.sock';
const READY_MS = 60_000;

export async function otherHost(): Promise<OtherHost> {
  const folder = mkdtempSync(join(tmpdir(), 'rd-o-'));
  const flags = ['--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'];
  const first = spawn('unshare', [...flags, 'sh', '-c', FIRST_PROCESS, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(first, 'exit');
  await Promise.race([
    once(first.stdout, 'data'),
    ended.then(([code]) => {
      throw new Error(`no host of its own: unshare ended with ${code}`);
    }),
  ]);
  const pid = readFileSync(`/proc/${first.pid}/task/${first.pid}/children`, 'utf8').trim();
  const inside = ['nsenter', `--target=${pid}`, '--net', '--mount', '--pid', '--'];
  const path = (there: string) => `/proc/${pid}/root${there}`;
  const runThere: OtherHost['run'] = (argv, options) => run([...inside, ...argv], { timeoutMs: 120_000, ...options });
  let docker: ChildProcess | undefined;

  return {
    folder,
    path,
    run: runThere,
    rdctl(home, ...argv) {
      const env = {
        PATH: process.env.PATH,
        RDCTL_HOME: join(folder, home),
        RDCTL_CONNECTIVITY_URL: 'http://127.0.0.1:9/',
      };
      return runThere([...commandOf(), ...argv], {
        env,
        accept: [0, 1, 2, 3, 4, 5, 6, 7, 8],
      });
    },
    async startDocker() {
      const log = openSync(join(folder, 'docker.log'), 'a');
      docker = spawn('nsenter', [...inside.slice(1), 'dockerd'], { stdio: ['ignore', log, log] });
      await vi.waitFor(
        async () => {
          if ((await callEngine(`unix://${path(SYSTEM_SOCKET)}`, 'GET', '/_ping')).status !== 200)
            throw new Error('not yet');
        },
        { timeout: READY_MS, interval: 50 },
      );
    },
    async stopDocker() {
      if (!docker) return;
      const exit = once(docker, 'exit');
      await runThere(['kill', readFileSync(path('/run/docker.pid'), 'utf8').trim()]);
      await exit;
      docker = undefined;
    },
    networkState: () =>
      vi.waitFor(
        async () => {
          const { stdout } = await runThere(['sh', '-c', NETWORK_STATE], { maxOutput: 16 * 1024 * 1024 });
          // The kernel still checks whether the address is a duplicate; its routes follow later.
          if (stdout.includes('"tentative":true')) throw new Error('not settled yet');
          const parts = stdout.split(/^# (links|rules4|rules6|routes|policy|sysctls)\n/m).slice(1);
          return Object.fromEntries(parts.flatMap((part, at) => (at % 2 === 0 ? [[part, parts[at + 1] ?? '']] : [])));
        },
        { timeout: READY_MS, interval: 50 },
      ),
    async get(address) {
      const fetch = ['/bin/busybox', 'timeout', '5', '/bin/busybox', 'wget', '-q', '-O', '-', `http://${address}`];
      return (await runThere(fetch)).stdout;
    },
    async close() {
      first.stdin.end();
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
