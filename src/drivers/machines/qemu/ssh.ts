import { shellLine } from '../../../process/shell-words.ts';
import type { MachineAccess } from '../../driver.ts';
import type { QemuPlaces } from './places.ts';

/** The user in the guest; it is a machine of its own, with nobody else in it. */
const USER = 'root';
const HOST = '127.0.0.1';

/** Options of every ssh: nothing of the user's own configuration, keys and agents, and exactly one key of the guest. */
export function sshOptions(places: Pick<QemuPlaces, 'key' | 'knownHosts'>, port: number): string[] {
  const options = {
    BatchMode: 'yes',
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    IdentityFile: places.key,
    UserKnownHostsFile: places.knownHosts,
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: 'yes',
    HostKeyAlgorithms: 'ssh-ed25519',
    // The default protects against computers to come, costs a guest a third of a second, and this never leaves the loopback.
    KexAlgorithms: 'curve25519-sha256',
    PreferredAuthentications: 'publickey',
    Port: String(port),
    User: USER,
    ConnectTimeout: '10',
    // A guest that hangs is found out, and one that is only slow is not.
    ServerAliveInterval: '10',
    ServerAliveCountMax: '4',
    LogLevel: 'ERROR',
  };
  return ['-F', 'none', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${quoted(value)}`])];
}

/** The connection that all others go through; it ends when the guest or this program does. */
export function masterArguments(places: Pick<QemuPlaces, 'key' | 'knownHosts' | 'control'>, port: number): string[] {
  return [
    'ssh',
    ...sshOptions(places, port),
    '-M',
    '-S',
    places.control,
    '-o',
    'ControlPersist=no',
    '-o',
    'StreamLocalBindUnlink=yes',
    '-o',
    'StreamLocalBindMask=0177',
    '-o',
    'ExitOnForwardFailure=no',
    '-N',
    '-T',
    HOST,
  ];
}

/** Something through that connection; ssh never makes another one. */
function throughMaster(places: Pick<QemuPlaces, 'key' | 'knownHosts' | 'control'>, port: number, ...more: string[]) {
  return [
    'ssh',
    ...sshOptions(places, port),
    '-S',
    places.control,
    '-o',
    'ControlMaster=no',
    '-o',
    'ProxyCommand=false',
    ...more,
  ];
}

/** A program in the guest, without a terminal. */
export function guestCommand(
  places: Pick<QemuPlaces, 'key' | 'knownHosts' | 'control'>,
  port: number,
  argv: readonly string[],
): string[] {
  return throughMaster(places, port, '-T', HOST, shellLine(argv));
}

/** A program in the guest through a connection of its own, which nothing else goes through; its streams are those of the program. */
export function ownConnection(
  places: Pick<QemuPlaces, 'key' | 'knownHosts'>,
  port: number,
  argv: readonly string[],
): string[] {
  return ['ssh', ...sshOptions(places, port), '-S', 'none', '-T', HOST, shellLine(argv)];
}

/** The way in for a person: through the same connection, so that neither port nor key is told. */
export function guestAccess(places: Pick<QemuPlaces, 'control'>, before: readonly string[]): MachineAccess {
  const options = ['ControlMaster=no', 'ProxyCommand=false', 'LogLevel=ERROR', `User=${USER}`];
  return {
    ssh: ['ssh', '-F', 'none', '-S', places.control, ...options.flatMap((option) => ['-o', option])],
    target: HOST,
    before: [...before],
  };
}

/** Adds (`forward`) or takes away (`cancel`) a forward, or asks whether the connection is there (`check`). */
export function control(
  places: Pick<QemuPlaces, 'key' | 'knownHosts' | 'control'>,
  port: number,
  order: 'check' | 'forward' | 'cancel' | 'exit',
  ...more: string[]
): string[] {
  return throughMaster(places, port, '-O', order, ...more, HOST);
}

/** A value in ssh's own configuration language, where blanks part values and `%` and `$` begin something. */
function quoted(value: string): string {
  const literal = value.replaceAll('%', '%%');
  return /[\s"]/.test(literal) ? `"${literal.replaceAll('"', '\\"')}"` : literal;
}
