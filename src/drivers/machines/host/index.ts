import { access, readFile } from 'node:fs/promises';
import { readIfThere } from '../../../os/atomic-file.ts';
import { steadyClock } from '../../../os/clock.ts';
import { findProgram, programPath } from '../../../os/program.ts';
import { run as runProgram } from '../../../os/run.ts';
import { platformText } from '../../../settings/field.ts';
import type { Driver, DriverContext, DriverFactory, DriverInfo, Probe, SupportMatrix } from '../../driver.ts';
import type { Run, Shell } from '../../shell.ts';
import { engineSupport, storageSupport, unsupported, withoutCluster } from '../shared/engine-support.ts';
import { installLine } from '../shared/install-line.ts';
import { lifelines } from '../shared/lifelines.ts';
import { hostForwarding } from './firewall.ts';
import { hostMachine } from './machine.ts';
import { hostPlaces } from './places.ts';
import { hostShell } from './shell.ts';

const NO_VM = 'there is no virtual machine, the host itself runs the containers';

/** The host driver's support of each setting. The type requires every setting. */
export const HOST_SUPPORT: SupportMatrix = {
  ...engineSupport('host'),
  ...withoutCluster('this driver has no cluster'),
  'application.adminAccess': unsupported(NO_VM, false),
  'virtualMachine.memoryInGB': unsupported(NO_VM),
  'virtualMachine.numberCPUs': unsupported(NO_VM),
  'virtualMachine.type': unsupported(NO_VM),
  'virtualMachine.useRosetta': unsupported(NO_VM, false),
  'virtualMachine.mount.type': unsupported(NO_VM),
  'experimental.virtualMachine.diskSize': unsupported(NO_VM),
  'experimental.virtualMachine.mount.9p.securityModel': unsupported(NO_VM),
  'experimental.virtualMachine.mount.9p.protocolVersion': unsupported(NO_VM),
  'experimental.virtualMachine.mount.9p.msizeInKib': unsupported(NO_VM),
  'experimental.virtualMachine.mount.9p.cacheMode': unsupported(NO_VM),
  'experimental.virtualMachine.sshPortForwarder': unsupported(NO_VM),
  'machine.mounts': unsupported(NO_VM),
  'machine.hostPorts': unsupported(NO_VM),
  'machine.pauseAfterMinutes': unsupported(NO_VM, 0),
};

const INFO: DriverInfo = {
  name: 'host',
  simulated: false,
  summary: 'private dockerd and containerd on this Linux host, alongside whatever else runs here',
  support: HOST_SUPPORT,
  liveFields: [],
  hasCluster: false,
};

/** The engines that run in a machine; injected, because a machine knows no engine. */
export type EnginesOf = (shell: Shell, cgroup: string) => Driver['engines'];

/**
 * Creates the driver of the host as a machine, with engines built on its shell. `networksOf` returns the file below `data` that lists networks with
 * bridges.
 */
export function hostFactory(enginesOf: EnginesOf, networksOf: (data: string) => string): DriverFactory {
  return {
    ...INFO,
    automatic: true,
    probe: async (env) => hostVerdict(await hostFacts(env)),
    atRest: async ({ env }) => ({ support: supportOf(await dockerdVersion(runnerFor(env))) }),
    open: async (context) => openHost(context, enginesOf, networksOf),
  };
}

function openHost(context: DriverContext, enginesOf: EnginesOf, networksOf: (data: string) => string): Driver {
  const places = hostPlaces(context.directory);
  const environment = programEnvironment(context.env, programPath(context.env.PATH));
  const run = runnerFor(context.env);
  const networks = async () => (await readIfThere(networksOf(places.data))) ?? '';
  const machine = hostMachine({ places, run, forwarding: hostForwarding, networks, log: context.log });
  const { network } = machine;
  const lines = lifelines(steadyClock);
  const shell = hostShell({
    places,
    logs: context.logs,
    run,
    environment,
    clock: steadyClock,
    network,
    hold: lines.hold,
    held: lines.held,
    log: context.log,
  });
  const engines = enginesOf(shell, places.cgroup);
  const version = dockerdVersion(run);
  let support = supportOf(undefined);
  return {
    ...INFO,
    get support() {
      return support;
    },
    machine: {
      ...machine,
      async observe(signal) {
        support = supportOf(await version);
        return machine.observe(signal);
      },
    },
    engines,
    keeps: [places.data],
    keptKind: 'directory',
    watch: lines.watch,
    async release() {
      await Promise.all(Object.values(engines).map((engine) => engine.release?.()));
    },
  };
}

function runnerFor(env: DriverContext['env']): Run {
  const environment = programEnvironment(env, programPath(env.PATH));
  return (argv, options) => runProgram(argv, { ...options, env: environment });
}

/** Returns the support with a dockerd of this version. Pure. */
function supportOf(dockerd: string | undefined): SupportMatrix {
  return { ...HOST_SUPPORT, ...storageSupport(dockerd) };
}

/** Returns the version of the installed dockerd, such as `20.10.24`, or undefined if it does not report one. */
async function dockerdVersion(run: Run): Promise<string | undefined> {
  const { stdout } = await run(['dockerd', '--version']).catch(() => ({ stdout: '' }));
  return /\d+(?:\.\d+)+/.exec(stdout)?.[0];
}

/** Facts that decide whether the host can be the machine. */
export interface HostFacts {
  platform: NodeJS.Platform;
  root: boolean;
  missingPrograms: readonly string[];
  /** The process may change links and mounts; root in an unprivileged container may not. */
  capable: boolean;
  controlGroups: boolean;
}

const PROGRAMS = ['dockerd', 'containerd', 'ctr', 'runc', 'ip', 'iptables', 'umount', 'nsenter', 'unshare'];
/** Packages of the engines; docker.io depends on containerd, runc and iptables. Debian 12 has the client in docker.io, Debian 13 in docker-cli. */
const PACKAGES = ['docker.io', "'?exact-name(docker-cli)'", 'iproute2', 'mount', 'ca-certificates'];

/** Returns the verdict on these facts, the cheapest fix first. Pure. */
export function hostVerdict({ platform, root, missingPrograms, capable, controlGroups }: HostFacts): Probe {
  if (platform !== 'linux') {
    return {
      usable: false,
      reason: `needs Linux, and this is ${platformText(platform)}`,
      fix: 'run rdctl on Linux',
    };
  }
  const missing = missingPrograms.length > 0 ? `not installed: ${missingPrograms.join(', ')}` : undefined;
  if (!root) {
    const reason = 'needs root for networks and control groups';
    const fix = missing ? `${installLine(PACKAGES, root)} && sudo rdctl up` : 'sudo rdctl up';
    return { usable: false, reason: missing ? `${reason}, and ${missing}` : reason, fix, copyable: true };
  }
  if (missing) return { usable: false, reason: missing, fix: installLine(PACKAGES, root), copyable: true };
  if (!capable) {
    return {
      usable: false,
      reason:
        'root may not change networks or mounts here (no CAP_NET_ADMIN or CAP_SYS_ADMIN), as in a plain container',
      fix: 'run it outside the container, or give the container those capabilities',
    };
  }
  if (!controlGroups) {
    return {
      usable: false,
      reason: 'no control groups are mounted at /sys/fs/cgroup',
      fix: 'mount -t cgroup2 none /sys/fs/cgroup',
      copyable: true,
    };
  }
  return { usable: true, detail: 'root on Linux with dockerd and containerd' };
}

async function hostFacts(env: Readonly<Record<string, string | undefined>>): Promise<HostFacts> {
  const path = programPath(env.PATH);
  const paths = await Promise.all(PROGRAMS.map((name) => findProgram(name, path)));
  return {
    platform: process.platform,
    root: process.getuid?.() === 0,
    missingPrograms: PROGRAMS.filter((_, index) => paths[index] === undefined),
    capable: await hasCapabilities(),
    controlGroups: (await exists('/sys/fs/cgroup/cgroup.controllers')) || (await exists('/sys/fs/cgroup/devices')),
  };
}

/** Bits of the effective set in `/proc/self/status`. */
const NET_ADMIN = 12n;
const SYS_ADMIN = 21n;

async function hasCapabilities(): Promise<boolean> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '');
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  return [NET_ADMIN, SYS_ADMIN].every((bit) => ((effective >> bit) & 1n) === 1n);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Environment variables that host programs inherit: `PATH`, proxies, and trusted certificates. */
const PASSED = [
  'HOME',
  'LANG',
  'TMPDIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
];

/**
 * Returns the environment of host programs: nothing that would redirect them (`DOCKER_HOST`, `CONTAINERD_ADDRESS`), no secret of ours, no service
 * manager socket.
 */
export function programEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  path: string,
): Record<string, string> {
  const kept = PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  return { ...Object.fromEntries(kept), PATH: path, LC_ALL: 'C' };
}
