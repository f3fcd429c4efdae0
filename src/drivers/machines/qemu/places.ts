import { createHash } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { makeDirectory } from '../../../os/directory.ts';
import { ioError } from '../../../os/io-error.ts';
import { isOwnDirectory } from '../../../os/user-directories.ts';

/** Paths of one machine on this host. */
export interface QemuPlaces {
  /** Eight hexadecimal digits derived from the directory. */
  id: string;
  /** The machine record: image, spec, port. */
  record: string;
  /** The guest's changes to the image; recreated for another image. */
  disk: string;
  /** All data of engines and cluster. */
  data: string;
  /** Login key of the guest; the public half is in the same file with `.pub`. */
  key: string;
  /** The guest's host key, and the known hosts file. */
  hostKey: string;
  knownHosts: string;
  /** Host name of the guest. */
  hostname: string;
  serialLog: string;
  /** Private directory for sockets. */
  run: string;
  /** True if `run` is outside the driver directory. */
  runElsewhere: boolean;
  monitor: string;
  /** Control socket of the ssh connection. */
  control: string;
  /** File of forwarded host ports. */
  forwards: string;
  /** File that marks a copy of the data disk in progress. */
  liveCopy: string;
  /** Directory where QEMU writes a copy of the data disk: it can open no other that it was not started with. */
  copies: string;
  /** File of the shared host directories. */
  shares: string;
  qemuRecord: string;
  sshRecord: string;
}

/** The limits of kernels for the path of a unix socket, without the terminator. */
const MAX_SOCKET_PATH = 107;
const MAX_SOCKET_PATH_DARWIN = 103;
/** Length of the suffix that ssh appends temporarily. */
const SSH_SUFFIX = 17;
/** Directory of the engines' logs in the guest; a full one is moved to `NAME.log.1`. */
export const GUEST_LOGS = '/var/lib/rdctl/logs';
/** The longest socket name in `run`. */
export const LONGEST_SOCKET = 'containerd-containerd.sock';

/**
 * Returns the places of a machine. `directory` is the driver's private directory. If it is too long for sockets, they get a short one below
 * `runtime`, our runtime directory.
 */
export function qemuPlaces(
  directory: string,
  runtime: string,
  platform: NodeJS.Platform = process.platform,
): QemuPlaces {
  const id = createHash('sha256').update(directory).digest('hex').slice(0, 8);
  const inside = join(directory, 'run');
  const most = platform === 'darwin' ? MAX_SOCKET_PATH_DARWIN : MAX_SOCKET_PATH;
  const fits = Buffer.byteLength(join(inside, LONGEST_SOCKET)) + SSH_SUFFIX <= most;
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
    copies: join(directory, 'copies'),
    shares: join(directory, 'home.json'),
    qemuRecord: join(directory, 'qemu.pid.json'),
    sshRecord: join(directory, 'ssh.pid.json'),
  };
}

const SHARE_DAEMON = /^(?:home|mount-[0-9a-f]{8})\.pid\.json$/;

/** Returns the record of the program that serves a share, and its socket to QEMU. */
export function sharePlaces({ record, run }: Pick<QemuPlaces, 'record' | 'run'>, id: string) {
  return { daemon: join(dirname(record), `${id}.pid.json`), socket: join(run, id) };
}

/** Returns the records of all programs that serve shares, including shares that no record lists. */
export async function shareDaemons({ record }: Pick<QemuPlaces, 'record'>): Promise<string[]> {
  const directory = dirname(record);
  return (await readdir(directory)).filter((name) => SHARE_DAEMON.test(name)).map((name) => join(directory, name));
}

/**
 * Creates the directory of the sockets. It is private, because write access there allows impersonating the guest.
 * @throws RdError `ERR_DRIVER_TERMINAL` when it belongs to another user or others have access; `ERR_IO`.
 */
export async function makeRuntime({ run, runElsewhere }: Pick<QemuPlaces, 'run' | 'runElsewhere'>): Promise<void> {
  if (runElsewhere) {
    await makeDirectory(dirname(run));
    refuseForeign(dirname(run));
  }
  await mkdir(run, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
    throw ioError('create', run, cause);
  });
  refuseForeign(run);
}

function refuseForeign(path: string): void {
  if (isOwnDirectory(path)) return;
  throw new RdError(
    'ERR_DRIVER_TERMINAL',
    `${path} is needed for sockets, but is not a private directory of this user`,
    {
      advice: 'Inspect it with `ls -ld`, and move it out of the way.',
    },
  );
}

export async function removeRuntime({ run }: Pick<QemuPlaces, 'run'>): Promise<void> {
  await rm(run, { recursive: true, force: true });
}
