import { readFile, readlink } from 'node:fs/promises';
import { findDaemon } from '../../../../os/daemon.ts';
import type { MachineConfinement } from '../../../driver.ts';

/**
 * Tells if the QEMU of this record is confined, as the system shows it: an earlier version may have started it. A confined one has another view of
 * files than ours, or may gain no rights.
 */
export async function runningConfinement(record: string): Promise<Pick<MachineConfinement, 'running'>> {
  const daemon = await findDaemon(record);
  if (daemon.state !== 'running' || process.platform !== 'linux') return {};
  const [own, its] = await Promise.all(['self', daemon.pid].map(standing));
  return its?.files === undefined ? {} : { running: its.files !== own?.files || its.rights !== own.rights };
}

async function standing(pid: string | number) {
  const [files, status] = await Promise.all([
    readlink(`/proc/${pid}/ns/mnt`).catch(() => undefined),
    readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''),
  ]);
  return { files, rights: /^NoNewPrivs:\s*(\d)/m.exec(status)?.[1] };
}
