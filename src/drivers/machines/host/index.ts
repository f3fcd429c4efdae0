import { readIfThere } from '../../../os/atomic-file.ts';
import { steadyClock } from '../../../os/clock.ts';
import { programPath } from '../../../os/program.ts';
import { run as runProgram } from '../../../os/run.ts';
import type { Driver, DriverContext, DriverFactory, DriverInfo } from '../../driver.ts';
import { lifelines } from '../../lifelines.ts';
import type { Shell } from '../../shell.ts';
import type { Run } from './commands.ts';
import { programEnvironment } from './commands.ts';
import { hostForwarding } from './forwarding.ts';
import { hostMachine } from './machine.ts';
import { hostPlaces } from './places.ts';
import { hostFacts, hostVerdict } from './probe.ts';
import { hostShell } from './shell.ts';
import { HOST_SUPPORT } from './support.ts';

const INFO: DriverInfo = {
  name: 'host',
  simulated: false,
  summary: 'private dockerd and containerd on this Linux host, beside whatever else runs here',
  support: HOST_SUPPORT,
  liveFields: [],
  hasCluster: false,
};

/** The engines that run in a machine; injected, because a machine knows no engine. */
export type EnginesOf = (shell: Shell, cgroup: string) => Driver['engines'];

/** The host as a machine, with engines built on its shell. `networksOf` is the file below `data` that lists networks with bridges. */
export function hostFactory(enginesOf: EnginesOf, networksOf: (data: string) => string): DriverFactory {
  return {
    ...INFO,
    automatic: true,
    probe: async (env) => hostVerdict(await hostFacts(env)),
    open: async (context) => openHost(context, enginesOf, networksOf),
  };
}

function openHost(context: DriverContext, enginesOf: EnginesOf, networksOf: (data: string) => string): Driver {
  const places = hostPlaces(context.directory);
  const environment = programEnvironment(context.env, programPath(context.env.PATH));
  const run: Run = (argv, options) => runProgram(argv, { ...options, env: environment });
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
    log: context.log,
  });
  const engines = enginesOf(shell, places.cgroup);
  return {
    ...INFO,
    machine,
    engines,
    keeps: [places.data],
    watch: lines.watch,
    async release() {
      await Promise.all(Object.values(engines).map((engine) => engine.release?.()));
    },
  };
}
