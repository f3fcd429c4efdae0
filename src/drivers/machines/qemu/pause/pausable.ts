import type {
  ClusterDriver,
  ClusterStatus,
  CompanionContainers,
  Driver,
  EngineDriver,
  ImageStore,
  Look,
  MachineDriver,
  MachineStatus,
} from '../../../driver.ts';
import type { Pauses } from './pauses.ts';

/** The parts of a driver that need the guest. */
interface Parts {
  machine: MachineDriver;
  engines: Driver['engines'];
  cluster: ClusterDriver;
}

/**
 * Wraps a machine that is paused when nobody uses it, and woken before any work in it. A cluster keeps it awake. `isUp`: the machine is on and has
 * booted.
 */
export function pausable({ machine, engines, cluster }: Parts, pauses: Pauses, isUp: () => Promise<boolean>): Parts {
  let clusterRuns = false;

  async function observeCluster(signal: AbortSignal, how?: Look): Promise<ClusterStatus> {
    const status = await cluster.observe(signal, how);
    clusterRuns = status.state === 'running' || status.state === 'unresponsive';
    return status;
  }

  return {
    machine: pausableMachine(machine, pauses, (status) => (clusterRuns ? 0 : limitMs(status))),
    engines: {
      moby: pausableEngine(engines.moby, pauses, isUp),
      containerd: pausableEngine(engines.containerd, pauses, isUp),
    },
    cluster: pausableCluster({ ...cluster, observe: observeCluster }, pauses, isUp),
  };
}

/** Returns the milliseconds without use after which a machine in this state is paused; 0: never. */
function limitMs(status: MachineStatus): number {
  return status.state === 'on' && status.repair === undefined ? status.spec.pauseAfterMinutes * 60_000 : 0;
}

function pausableMachine(
  machine: MachineDriver,
  pauses: Pauses,
  limitOf: (status: MachineStatus) => number,
): MachineDriver {
  return {
    observe(signal) {
      const look = async () => {
        // A machine that cannot be observed is not paused.
        let limit = 0;
        try {
          const status = await machine.observe(signal);
          limit = limitOf(status);
          return status;
        } finally {
          pauses.setLimit(limit);
        }
      };
      return pauses.observe(look, async () => {
        const status = await machine.observe(signal);
        // Halted, continued from outside, or ended.
        if (status.state !== 'on' || status.paused === undefined) await pauses.wake();
        return status;
      });
    },
    perform: (step, signal, progress) => pauses.awake(() => machine.perform(step, signal, progress)),
  };
}

/**
 * Observes a part of a machine that may be paused. Nothing changes in a paused guest, so the last observation stays true; without one the
 * guest is woken.
 */
function observation<T>(
  pauses: Pick<Pauses, 'observe' | 'wake'>,
  isUp: () => Promise<boolean>,
  observe: (signal: AbortSignal, how?: Look) => Promise<T>,
): (signal: AbortSignal, how?: Look) => Promise<T> {
  let last: T | undefined;
  return async function seen(signal, how): Promise<T> {
    const look = async () => {
      last = undefined;
      last = await observe(signal, how);
      return last;
    };
    return pauses.observe(look, async () => {
      // A QEMU that was killed is no longer paused.
      if (last !== undefined && (await isUp())) return last;
      await pauses.wake();
      return seen(signal, how);
    });
  };
}

function pausableEngine(engine: EngineDriver, pauses: Pauses, isUp: () => Promise<boolean>): EngineDriver {
  const { images, companions } = engine;
  return {
    ...engine,
    observe: observation(pauses, isUp, engine.observe),
    perform: (step, signal) => pauses.awake(() => engine.perform(step, signal)),
    ...(images ? { images: pausableImages(images, pauses) } : {}),
    ...(companions ? { companions: pausableCompanions(companions, pauses) } : {}),
  };
}

function pausableImages(images: ImageStore, { awake }: Pauses): ImageStore {
  return {
    ...images,
    has: (reference, signal) => awake(() => images.has(reference, signal)),
    pull: (reference, signal) => awake(() => images.pull(reference, signal)),
    tags: (name, signal) => awake(() => images.tags(name, signal)),
    open: (reference, signal, work) => awake(() => images.open(reference, signal, work)),
  };
}

function pausableCompanions(companions: CompanionContainers, { awake }: Pauses): CompanionContainers {
  return {
    ensure: (companion, signal) => awake(() => companions.ensure(companion, signal)),
    list: (signal) => awake(() => companions.list(signal)),
    remove: (id, signal) => awake(() => companions.remove(id, signal)),
  };
}

function pausableCluster(cluster: ClusterDriver, pauses: Pauses, isUp: () => Promise<boolean>): ClusterDriver {
  const { connect } = cluster;
  return {
    ...cluster,
    observe: observation(pauses, isUp, cluster.observe),
    perform: (step, signal, onWait) => pauses.awake(() => cluster.perform(step, signal, onWait)),
    ...(connect ? { connect: (target, signal) => pauses.awake(() => connect(target, signal)) } : {}),
  };
}
