import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** Where one machine has its files on this host. */
export interface QemuPlaces {
  /** Eight hexadecimal digits that stand for the directory. */
  id: string;
  /** What is known about the machine: image, spec, port. */
  record: string;
  /** What the guest changes of the image; made anew from another image. */
  disk: string;
  /** Everything that engines and cluster keep. */
  data: string;
  /** Logs in to the guest; its public half is in the file of the same name with `.pub`. */
  key: string;
  /** The key that the guest shows, and what is known of it. */
  hostKey: string;
  knownHosts: string;
  /** Name of the guest. */
  hostname: string;
  serialLog: string;
  /** Directory for sockets, private. */
  run: string;
  /** True when `run` is outside the directory of the driver. */
  runElsewhere: boolean;
  monitor: string;
  /** Control socket of the ssh connection. */
  control: string;
  /** Ports of this host that lead into the guest. */
  forwards: string;
  /** There while a copy of the data disk is made. */
  liveCopy: string;
  /** What is known about the directory of this host that the guest shows, and where QEMU meets the program for it. */
  home: string;
  homeSocket: string;
  /** Of the programs on this host. */
  homeDaemon: string;
  qemuRecord: string;
  sshRecord: string;
}

/** The kernel's limit for the path of a unix socket, without the end mark, and what ssh adds while it makes one. */
const MAX_SOCKET_PATH = 107;
const SSH_SUFFIX = 17;
/** The longest name of a socket in `run`. */
export const LONGEST_SOCKET = 'containerd-containerd.sock';

/**
 * `directory` is the driver's private directory. One that is too long for sockets gets a short one below `runtime`, our directory
 * for such things.
 */
export function qemuPlaces(directory: string, runtime: string): QemuPlaces {
  const id = createHash('sha256').update(directory).digest('hex').slice(0, 8);
  const inside = join(directory, 'run');
  const fits = Buffer.byteLength(join(inside, LONGEST_SOCKET)) + SSH_SUFFIX <= MAX_SOCKET_PATH;
  const run = fits ? inside : join(runtime, id);
  return {
    id,
    record: join(directory, 'machine.json'),
    disk: join(directory, 'disk.qcow2'),
    data: join(directory, 'data.qcow2'),
    key: join(directory, 'key'),
    hostKey: join(directory, 'host-key'),
    knownHosts: join(directory, 'known-hosts'),
    hostname: join(directory, 'hostname'),
    serialLog: join(directory, 'serial.log'),
    run,
    runElsewhere: !fits,
    monitor: join(run, 'qmp'),
    control: join(run, 'ssh'),
    forwards: join(run, 'ports.json'),
    liveCopy: join(directory, 'live-copy'),
    home: join(directory, 'home.json'),
    homeSocket: join(run, 'home'),
    homeDaemon: join(directory, 'home.pid.json'),
    qemuRecord: join(directory, 'qemu.pid.json'),
    sshRecord: join(directory, 'ssh.pid.json'),
  };
}
