import { homedir } from 'node:os';
import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { imageStore } from '../../../guest-images/store.ts';
import { realPace } from '../../../process/pace.ts';
import { programPath } from '../../../process/program.ts';
import { run as runProgram } from '../../../process/run.ts';
import { places as homePlaces } from '../../../storage/places.ts';
import type { Driver, DriverContext, DriverFactory, DriverInfo } from '../../driver.ts';
import type { Shell } from '../../shell.ts';
import { accelerators } from './accelerator.ts';
import type { HostRun } from './disks.ts';
import { engineInGuest } from './engines.ts';
import { GUEST_PATH, guestConnection } from './guest.ts';
import { qemuMachine } from './machine.ts';
import { qemuPlaces } from './places.ts';
import { judge, qemuFacts } from './probe.ts';
import { readQemuRecord } from './record.ts';
import { runtimeDirectory } from './runtime.ts';
import { qemuShell } from './shell.ts';
import { guestAccess } from './ssh.ts';
import { QEMU_SUPPORT } from './support.ts';

const INFO: DriverInfo = {
  name: 'qemu',
  simulated: false,
  summary: 'a virtual machine in QEMU with dockerd and containerd in it, as any user',
  support: QEMU_SUPPORT,
  liveFields: [],
  hasCluster: false,
};

/** The engines that run in a machine; handed in because a machine knows no engine. */
export type EnginesOf = (shell: Shell, cgroup: string) => Driver['engines'];

/** A virtual machine, for engines that are built on its shell. */
export function qemuFactory(enginesOf: EnginesOf): DriverFactory {
  return {
    ...INFO,
    automatic: true,
    async probe(env) {
      const facts = await qemuFacts(env, 0);
      const images = facts.platform === 'linux' ? await imagesOf(env).list() : [];
      return judge({ ...facts, images: images.length });
    },
    open: async (context) => openQemu(context, enginesOf),
  };
}

function imagesOf(env: DriverContext['env']) {
  return imageStore(homePlaces(env, 'linux', homedir()).guestImages);
}

function openQemu(context: DriverContext, enginesOf: EnginesOf): Driver {
  const { directory, logs, env, log } = context;
  const places = qemuPlaces(directory, runtimeDirectory(process.getuid?.() ?? 0));
  const environment = { PATH: programPath(env.PATH), LC_ALL: 'C', HOME: env.HOME ?? homedir() };
  const run: HostRun = (argv, options) => runProgram(argv, { ...options, env: environment });
  const guest = guestConnection({
    places,
    logFile: join(logs, 'guest-ssh.log'),
    environment,
    pace: realPace,
    async port() {
      const record = await readQemuRecord(places.record);
      if (record !== undefined && record !== 'damaged' && record.power === 'on') return record.sshPort;
      throw new RdError('ERR_DRIVER_FAILED', 'the machine is not on', { advice: 'Start the machine first.' });
    },
  });
  const machine = qemuMachine({
    places,
    logFile: join(logs, 'qemu.log'),
    images: imagesOf(env),
    run,
    environment,
    guest,
    accelerator: accelerators(directory, run),
    pace: realPace,
    log,
  });
  const shell = qemuShell({ places, guest, pace: realPace, log });
  const inside = enginesOf(shell, `/rdctl-${places.id}`);
  const state = { isUp: machine.isUp, isConnected: machine.answers };
  const engines = { moby: engineInGuest(inside.moby, state), containerd: engineInGuest(inside.containerd, state) };
  return {
    ...INFO,
    machine,
    engines,
    keeps: [places.data],
    access: () => guestAccess(places, ['env', GUEST_PATH]),
    async release() {
      await Promise.all(Object.values(engines).map((engine) => engine.release?.()));
    },
  };
}
