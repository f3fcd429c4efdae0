import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isOwnDirectory, runtimeDirectory } from '../os/user-directories.ts';
import { loadState } from '../state/state-file.ts';
import type { EngineName, MachineAccess } from './driver.ts';
import { containerdPlaces } from './engines/containerd-daemon.ts';
import { mobyPlaces } from './engines/moby-config.ts';
import { hostPlaces } from './machines/host/places.ts';
import { GUEST_PATH } from './machines/qemu/guest.ts';
import { qemuPlaces } from './machines/qemu/places.ts';
import { readQemuRecord } from './machines/qemu/record.ts';
import { guestAccess, guestLogin, type SshLogin, sshConfigBlock } from './machines/qemu/ssh.ts';

export { sshConfigBlock };

/** The way that a user's program reaches the backend. */
export type BackendAccess =
  /** Into a dedicated machine, over the service's ssh connection or over a separate login. */
  | { in: 'machine'; access: MachineAccess; login: SshLogin }
  /** The machine is this host. Has the endpoint of each started engine, such as `unix:///run/docker.sock`. */
  | { in: 'host'; endpoints: Partial<Record<EngineName, string>> }
  /** No reachable backend is recorded. `simulated`: the driver never has one. */
  | { in: 'nothing'; simulated: boolean };

/**
 * Returns the access to the backend of a home, derived from driver records on disk and never from a service's response, because it becomes a program
 * with options and paths. Throws `ERR_IO` for unreadable records.
 */
export async function backendAccess({
  state,
  stateFile,
}: {
  state: string;
  stateFile: string;
}): Promise<BackendAccess> {
  const loaded = await loadState(stateFile);
  const driver = loaded.kind === 'loaded' ? loaded.state.driver : undefined;
  if (driver === 'qemu') return intoGuest(join(state, 'drivers', driver));
  if (driver === 'host') return ontoHost(join(state, 'drivers', driver));
  return { in: 'nothing', simulated: driver === 'simulated' };
}

async function intoGuest(directory: string): Promise<BackendAccess> {
  const places = qemuPlaces(directory, runtimeDirectory(process.getuid?.() ?? 0));
  const record = await readQemuRecord(places.record);
  const isOn = record !== undefined && record !== 'damaged' && record.power === 'on';
  // Write access there allows impersonating the guest.
  if (!isOn || !isOwnDirectory(places.run)) return { in: 'nothing', simulated: false };
  return { in: 'machine', access: guestAccess(places, ['env', GUEST_PATH]), login: guestLogin(places, record.sshPort) };
}

function ontoHost(directory: string): BackendAccess {
  const places = hostPlaces(directory);
  const { data, run } = places;
  if (!isOwnDirectory(run)) return { in: 'host', endpoints: {} };
  const sockets = {
    moby: mobyPlaces(places).socket,
    containerd: containerdPlaces(join(data, 'containerd'), join(run, 'containerd')).socket,
  };
  // The record is written before an engine is started, and removed after it has stopped.
  const started = (['moby', 'containerd'] as const).filter((name) => existsSync(join(run, `${name}.json`)));
  return { in: 'host', endpoints: Object.fromEntries(started.map((name) => [name, `unix://${sockets[name]}`])) };
}
