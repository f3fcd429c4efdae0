import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { k3sPlaces, networkConfigOf } from './clusters/k3s/config.ts';
import { recalledVersion } from './clusters/k3s/installation.ts';
import { k3sCluster } from './clusters/k3s/k3s.ts';
import { k3sSources } from './clusters/k3s/sources.ts';
import type { ClusterDriver, DriverContext, DriverFactory, DriverName } from './driver.ts';
import { containerdEngine } from './engines/containerd.ts';
import type { PodNetwork } from './engines/containerd-daemon.ts';
import { containerdPods } from './engines/containerd-images.ts';
import { mobyEngine } from './engines/moby.ts';
import { mobyNetworks } from './engines/moby-config.ts';
import { mobyPods } from './engines/moby-images.ts';
import { hostFactory } from './machines/host/index.ts';
import { type GuestClusterParts, qemuFactory } from './machines/qemu/index.ts';
import { simulated } from './machines/simulated/index.ts';
import type { Shell, ShellPlaces } from './shell.ts';

/** The driver whose machine is this host, with the engines that run on it. */
export const host: DriverFactory = hostFactory(
  (shell, cgroup) => ({ moby: mobyEngine(shell, cgroup), containerd: containerdEngine(shell) }),
  mobyNetworks,
);

/** The driver of a virtual machine with the engines in it, and a cluster on them. */
export const qemu: DriverFactory = qemuFactory({
  engines: (shell, cgroup) => ({
    moby: mobyEngine(shell, cgroup),
    containerd: containerdEngine(shell, podNetwork(shell.places)),
  }),
  cluster: k3sOn,
  installedCluster: recalledVersion,
});

/** Every driver, in order of preference. A new driver is a folder, a `DriverName` and a line here. */
export const DRIVERS: readonly DriverFactory[] = [simulated, qemu, host];

export interface DriverChoice {
  /** `--driver` or `RDCTL_DRIVER`. */
  requested?: string;
  /** The driver that the existing state belongs to. */
  recorded?: string;
  env: DriverContext['env'];
  /** All drivers by default. */
  drivers?: readonly DriverFactory[];
}

/**
 * Chooses the driver: the recorded one, else the requested one, else the first usable one that may be chosen automatically. `reason` is a clause,
 * such as `it was requested`.
 * @throws RdError `ERR_USAGE` for an unknown name, `ERR_WRONG_TARGET` when the state belongs to a driver other than the requested one,
 * `ERR_NO_DRIVER` with a line per driver when none is usable.
 */
export async function chooseDriver(choice: DriverChoice): Promise<{ factory: DriverFactory; reason: string }> {
  const { requested, recorded, env, drivers = DRIVERS } = choice;
  const requestedFactory = requested === undefined || requested === '' ? undefined : driverNamed(requested, drivers);
  if (recorded !== undefined) {
    if (requestedFactory && requestedFactory.name !== recorded) throw otherDriver(requestedFactory.name, recorded);
    return { factory: await runnable(driverNamed(recorded, drivers), env), reason: 'the existing state belongs to it' };
  }
  if (requestedFactory) return { factory: await runnable(requestedFactory, env), reason: 'it was requested' };
  return firstUsable(drivers, env);
}

/**
 * Returns the driver of that name.
 * @throws RdError `ERR_USAGE` with the available names.
 */
export function driverNamed(name: string, drivers: readonly DriverFactory[] = DRIVERS): DriverFactory {
  const match = drivers.find((factory) => factory.name === name);
  if (match) return match;
  throw new RdError('ERR_USAGE', `there is no driver "${name}"`, {
    advice: `Available drivers: ${drivers.map((factory) => factory.name).join(', ')}.`,
  });
}

async function runnable(factory: DriverFactory, env: DriverContext['env']): Promise<DriverFactory> {
  const probe = await factory.probe(env);
  if (probe.usable) return factory;
  throw new RdError('ERR_NO_DRIVER', `the driver ${factory.name} cannot run here: ${probe.reason}`, {
    advice: `${probe.copyable ? 'Fix it with' : 'Fix'}: ${probe.fix}`,
  });
}

async function firstUsable(drivers: readonly DriverFactory[], env: DriverContext['env']) {
  const details: string[] = [];
  for (const factory of drivers) {
    if (!factory.automatic) continue;
    const probe = await factory.probe(env);
    if (probe.usable) return { factory, reason: `it is the first that can run here (${probe.detail})` };
    details.push(`${factory.name}: ${probe.reason}; fix: ${probe.fix}`);
  }
  throw new RdError('ERR_NO_DRIVER', 'no driver can run here', {
    advice: 'Fix one of these, or add `--driver simulated` to try rdctl with a model that runs nothing.',
    details,
  });
}

function otherDriver(requested: DriverName, recorded: string): RdError {
  return new RdError(
    'ERR_WRONG_TARGET',
    `the state here belongs to the driver ${recorded}, and ${requested} would start without its images, volumes and cluster`,
    {
      advice: `Leave out --driver (and RDCTL_DRIVER) to continue with ${recorded}, or set RDCTL_HOME to another directory for ${requested}.`,
    },
  );
}

/** Creates the cluster of a machine whose engines are those of this folder, created with `podNetwork`. */
export function k3sOn(shell: Shell, { context, ...parts }: GuestClusterParts): ClusterDriver {
  return k3sCluster(shell, {
    ...parts,
    ownsNetwork: true,
    engines: { moby: mobyPods(shell), containerd: containerdPods(shell) },
    sources: k3sSources(context.env),
    kubeconfig: join(context.directory, 'kubeconfig.json'),
    now: context.now,
  });
}

/** Returns the options that `containerdEngine` needs to run the cluster's pods. */
export function podNetwork(places: ShellPlaces): PodNetwork {
  const k3s = k3sPlaces(places);
  return { configuration: networkConfigOf(k3s), plugins: k3s.plugins };
}
