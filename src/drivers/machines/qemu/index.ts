import { totalmem } from 'node:os';
import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { defined } from '../../../json.ts';
import { steadyClock } from '../../../os/clock.ts';
import { findDaemon } from '../../../os/daemon.ts';
import { programPath } from '../../../os/program.ts';
import { readText } from '../../../os/regular-file.ts';
import { run as runProgram } from '../../../os/run.ts';
import { runtimeDirectory, userHome } from '../../../os/user-directories.ts';
import { places as homePlaces, identityOf } from '../../../state/places.ts';
import type {
  ClusterDriver,
  Driver,
  DriverContext,
  DriverFactory,
  DriverInfo,
  MachineStatus,
  SupportMatrix,
} from '../../driver.ts';
import type { Architecture } from '../../guest-images/architecture.ts';
import { type GuestImage, imageToBoot } from '../../guest-images/image.ts';
import { imageStore } from '../../guest-images/store.ts';
import type { Run, Shell } from '../../shell.ts';
import { storageSupport } from '../shared/engine-support.ts';
import { lifelines } from '../shared/lifelines.ts';
import { accelerators } from './accelerator.ts';
import { NETWORK } from './arguments.ts';
import { clusterInGuest } from './cluster-in-guest.ts';
import { confine, confineRun } from './confine/confinement.ts';
import { runningConfinement } from './confine/running.ts';
import { checkDiskCopy, dataBytes } from './disks.ts';
import { engineInGuest, type GuestState } from './engine-in-guest.ts';
import { GUEST_PATH, guestConnection } from './guest.ts';
import { unlessHalted } from './halts.ts';
import { hostPortFilter } from './host-ports/filter.ts';
import { hostSockets } from './host-ports/host-sockets.ts';
import { liveCopies } from './live-copy.ts';
import { qemuMachine } from './machine.ts';
import { qemuMonitor } from './monitor.ts';
import { changeNotices } from './mounts/change-notices.ts';
import { featuresOf, hostFacts } from './mounts/host-facts.ts';
import { changesLive, guestMounts } from './mounts/mounts.ts';
import { guestPause } from './pause/guest-pause.ts';
import { pausable } from './pause/pausable.ts';
import { guestPauses } from './pause/pauses.ts';
import { qemuPlaces } from './places.ts';
import { portConflicts } from './ports/conflict.ts';
import { forwardRecord } from './ports/forward-record.ts';
import { portForwarder } from './ports/forwarder.ts';
import { qemuRoute, sshRoute } from './ports/routes.ts';
import { readQemuRecord } from './record.ts';
import { qemuShell } from './shell.ts';
import { guestAccess } from './ssh.ts';
import { memorySupport, mountSupport, ownHost, pauseSupport, QEMU_SUPPORT, qemuFacts, qemuVerdict } from './support.ts';

const INFO: DriverInfo = {
  name: 'qemu',
  simulated: false,
  summary: 'a virtual machine in QEMU with dockerd, containerd and k3s in it, as any user',
  support: QEMU_SUPPORT,
  liveFields: ['experimental.virtualMachine.sshPortForwarder', 'application.adminAccess'],
  hasCluster: true,
};

/** Maximum size of the memo of a cluster, which has one line. */
const MEMO_BYTES = 4096;

/** The parts that a cluster gets from its machine, and the places of its files. */
export interface GuestClusterParts {
  context: DriverContext;
  /** Host directory for release lists and files; created when needed. */
  cache: string;
  memo: string;
  name: string;
  isOn?(signal: AbortSignal): Promise<boolean>;
  answers?(signal: AbortSignal): Promise<boolean>;
}

/** The programs that run in a machine; injected, because a machine knows no engine and no cluster. */
export interface GuestPrograms {
  engines(shell: Shell, cgroup: string): Driver['engines'];
  cluster(shell: Shell, parts: GuestClusterParts): ClusterDriver;
  /** Returns the version in the memo of a cluster, in the form of `DriverAtRest.installedCluster`. */
  installedCluster(memo: string): Promise<string | undefined>;
}

/** Creates the driver of a virtual machine, with engines and a cluster built on its shell. */
export function qemuFactory(programs: GuestPrograms): DriverFactory {
  return {
    ...INFO,
    automatic: true,
    async probe(env) {
      const images = process.platform === 'win32' ? [] : await imagesOf(env).list();
      return qemuVerdict(
        await qemuFacts(
          env,
          images.map(({ architecture }) => architecture),
        ),
      );
    },
    async atRest({ env, directory }) {
      const [support, installed] = await Promise.all([
        supportNow(env, directory),
        programs.installedCluster(memoIn(directory)),
      ]);
      return { support, ...defined({ installedCluster: installed }) };
    },
    open: (context) => openQemu(context, programs),
  };
}

/** Returns the current support here: programs and images may change at any time. */
async function supportNow(env: DriverContext['env'], directory: string): Promise<SupportMatrix> {
  const { platform, architecture } = ownHost();
  const images = imagesOf(env);
  const [known, selected, found] = await Promise.all([
    images.list(),
    images.selected(),
    readQemuRecord(qemuPlaces(directory, runtimeDirectory(process.getuid?.() ?? 0)).record),
  ]);
  const record = found === 'damaged' ? undefined : found;
  // The image of the running machine, or of its next start.
  const image =
    record?.power === 'on'
      ? known.find(({ digest }) => digest === record.image)
      : imageToBoot(known, { architecture, selected, current: record?.image });
  return {
    ...QEMU_SUPPORT,
    ...memorySupport(totalmem()),
    ...mountSupport(await shareFacts(env, known, architecture)),
    ...pauseSupport(platform),
    ...storageSupport(image?.source?.packages.find(({ name }) => name === 'docker.io')?.version),
  };
}

/** Returns the path of the memo that names the cluster with data on the disk of the machine, for use while that is off. */
function memoIn(directory: string): string {
  return join(directory, 'k3s-release');
}

/** Returns the host's facts for sharing directories with a machine of these images. */
function shareFacts(env: DriverContext['env'], images: readonly GuestImage[], own: Architecture) {
  return hostFacts(env.PATH, featuresOf(images.filter(({ architecture }) => architecture === own)));
}

function imagesOf(env: DriverContext['env']) {
  return imageStore(homeOf(env).guestImages);
}

function homeOf(env: DriverContext['env']) {
  return homePlaces(env, process.platform === 'darwin' ? 'darwin' : 'linux', userHome(env));
}

async function openQemu(context: DriverContext, programs: GuestPrograms): Promise<Driver> {
  const { directory, logs, env, log } = context;
  const host = ownHost();
  const home = homeOf(env);
  const images = imagesOf(env);
  const places = qemuPlaces(directory, runtimeDirectory(process.getuid?.() ?? 0));
  const environment = { PATH: programPath(env.PATH), LC_ALL: 'C', HOME: userHome(env) };
  const run: Run = (argv, options) => runProgram(argv, { ...options, env: environment });
  const confined = confine({ platform: host.platform, run, env, log });
  const runConfined = confineRun(run, confined);
  async function port(): Promise<number> {
    const record = await readQemuRecord(places.record);
    if (record !== undefined && record !== 'damaged' && record.power === 'on') return record.sshPort;
    throw new RdError('ERR_DRIVER_FAILED', 'the machine is not on', { advice: 'Start the machine first.' });
  }
  const lines = lifelines(steadyClock);
  const guest = guestConnection({
    places,
    logFile: join(logs, 'guest-ssh.log'),
    environment,
    clock: steadyClock,
    port,
  });
  const facts = async () => shareFacts(env, await images.list(), host.architecture);
  const notices = changeNotices({ guest, clock: steadyClock });
  const mounts = guestMounts({
    notices,
    places,
    guest,
    environment,
    confine: confined,
    clock: steadyClock,
    port,
    logFile: join(logs, 'guest-home.log'),
    home: env.HOME,
    own: [home.data, home.state, home.config, directory],
    facts,
    log,
  });
  const monitor = qemuMonitor(places.monitor);
  const portConflict = portConflicts();
  const ports = portForwarder({
    guest,
    routes: { ssh: sshRoute(guest), qemu: qemuRoute(monitor, NETWORK) },
    record: forwardRecord(places.forwards),
    portConflict,
    clock: steadyClock,
    log,
  });
  const pauses = guestPauses(
    guestPause({
      places,
      guest,
      monitor,
      mounts,
      ports,
      lines,
      port,
      isUp: () => machine.isUp(),
      emulatedStart: () => machine.emulatedStart(),
      clock: steadyClock,
      log,
    }),
  );
  const machine = qemuMachine({
    places,
    logFile: join(logs, 'qemu.log'),
    images,
    host,
    run: runConfined,
    confine: confined,
    environment,
    guest,
    mounts,
    monitor,
    ports,
    hostPorts: hostPortFilter({ guest, hostSockets, published: () => ports.published(), log }),
    accelerator: accelerators(host, directory, runConfined),
    freezes: env.RDCTL_QEMU_FREEZE !== '0',
    pause: pauses.current,
    clock: steadyClock,
    log,
  });
  const copies = liveCopies({
    places,
    guest,
    monitor,
    run: runConfined,
    clock: steadyClock,
    isAlive: async () => (await findDaemon(places.qemuRecord)).state === 'running',
    answers: async (signal) => (await machine.isUp()) && machine.answers(signal),
    log,
  });
  const shell = qemuShell({
    places,
    guest,
    environment: env,
    claim: ports.claim,
    portConflict,
    hold: lines.hold,
    held: lines.held,
    clock: steadyClock,
    log,
  });
  const guestEngines = programs.engines(shell, `/rdctl-${places.id}`);
  const state: GuestState = {
    isUp: machine.isUp,
    isConnected: machine.answers,
    started: machine.started,
    unlessHalted: (signal, work) => unlessHalted({ monitor, clock: steadyClock }, signal, work),
    onReconnect: guest.onReconnect,
  };
  const memo = memoIn(directory);
  const cluster = programs.cluster(shell, {
    context,
    cache: join(home.cache, 'k3s'),
    memo,
    name: identityOf(home).kubeContext,
    isOn: machine.isUp,
    answers: machine.answers,
  });
  async function observeMachine(signal: AbortSignal): Promise<MachineStatus> {
    await copies.settle();
    support = await supportNow(env, directory);
    diskBytes = await dataBytes(places.data);
    const status = await machine.observe(signal);
    const isLive = status.state === 'on' && changesLive(status.spec);
    liveFields = isLive ? [...INFO.liveFields, 'machine.mounts'] : INFO.liveFields;
    // The guest connection, and everything tunneled through it, ends with QEMU. The connection of a paused guest is already held.
    if (status.state === 'on' && status.paused === undefined) await lines.hold(places.control);
    return status;
  }
  const { engines, ...parts } = pausable(
    {
      machine: { observe: observeMachine, perform: machine.perform },
      engines: {
        moby: engineInGuest(guestEngines.moby, state, steadyClock),
        containerd: engineInGuest(guestEngines.containerd, state, steadyClock),
      },
      cluster: clusterInGuest(cluster, state, steadyClock),
    },
    pauses,
    machine.isUp,
  );
  let support = await supportNow(env, directory);
  let diskBytes = await dataBytes(places.data);
  let liveFields = INFO.liveFields;
  return {
    ...INFO,
    // Programs and images may change while the service runs.
    get support() {
      return support;
    },
    get liveFields() {
      return liveFields;
    },
    ...parts,
    engines,
    keeps: [places.data, memo],
    keptKind: 'file',
    copyLive: (targets, signal, progress) => pauses.awake(() => copies.copy(targets, signal, progress)),
    async checkKept({ of, at }, signal) {
      if (of === places.data) await checkDiskCopy({ run: runConfined, signal }, at);
      else await readText(at, MEMO_BYTES);
    },
    diskBytes: () => diskBytes,
    published: ports.published,
    watch: lines.watch,
    confinement: async () => ({ next: await confined.method(), ...(await runningConfinement(places.qemuRecord)) }),
    access: () => guestAccess(places, ['env', GUEST_PATH]),
    async release() {
      await pauses.release();
      shell.release();
      notices.stop();
      await Promise.all([ports.release(), ...Object.values(engines).map((engine) => engine.release?.())]);
    },
  };
}
