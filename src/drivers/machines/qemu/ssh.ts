import { shellLine } from '../../../os/program.ts';
import type { MachineAccess } from '../../driver.ts';
import type { QemuPlaces } from './places.ts';

/** The only user in the guest. */
const USER = 'root';
const HOST = '127.0.0.1';

/** Returns options for every ssh: ignore the user's own configuration, keys and agents; accept exactly one host key. */
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
    // The post-quantum default costs a guest a third of a second, and this traffic never leaves the loopback.
    KexAlgorithms: 'curve25519-sha256',
    PreferredAuthentications: 'publickey',
    Port: String(port),
    User: USER,
    ConnectTimeout: '10',
    // Detects a hung guest without giving up on a slow one, and seldom wakes an idle one.
    ServerAliveInterval: '15',
    ServerAliveCountMax: '3',
    LogLevel: 'ERROR',
  };
  return ['-F', 'none', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${quoteValue(value)}`])];
}

/** Returns the arguments of the control master that all other connections share; it ends with the guest or this process. */
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

/** Returns a command over the shared connection; ssh never opens another one. */
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

/** Returns the command that runs a program in the guest, without a terminal. */
export function guestCommand(
  places: Pick<QemuPlaces, 'key' | 'knownHosts' | 'control'>,
  port: number,
  argv: readonly string[],
): string[] {
  return throughMaster(places, port, '-T', HOST, shellLine(argv));
}

/** Returns the command that runs a program in the guest over a dedicated connection; the streams are those of the program. */
export function ownConnection(
  places: Pick<QemuPlaces, 'key' | 'knownHosts'>,
  port: number,
  argv: readonly string[],
): string[] {
  return ['ssh', ...sshOptions(places, port), '-S', 'none', '-T', HOST, shellLine(argv)];
}

/** Returns interactive access over the shared connection, which exposes neither port nor key. */
export function guestAccess(places: Pick<QemuPlaces, 'control'>, before: readonly string[]): MachineAccess {
  const options = ['ControlMaster=no', 'ProxyCommand=false', 'LogLevel=ERROR', `User=${USER}`];
  return {
    ssh: ['ssh', '-F', 'none', '-S', places.control, ...options.flatMap((option) => ['-o', option])],
    target: HOST,
    before: [...before],
  };
}

/** The login data that any ssh client needs for a connection of its own, valid until the machine stops. */
export interface SshLogin {
  hostname: string;
  port: number;
  user: string;
  identityFile: string;
  knownHostsFile: string;
}

export function guestLogin(places: Pick<QemuPlaces, 'key' | 'knownHosts'>, port: number): SshLogin {
  return { hostname: HOST, port, user: USER, identityFile: places.key, knownHostsFile: places.knownHosts };
}

/**
 * Returns a block for the configuration of OpenSSH.
 * @param name the host name that the user types.
 */
export function sshConfigBlock(name: string, login: SshLogin): string {
  const options = {
    HostName: login.hostname,
    Port: String(login.port),
    User: login.user,
    IdentityFile: login.identityFile,
    IdentitiesOnly: 'yes',
    UserKnownHostsFile: login.knownHostsFile,
    StrictHostKeyChecking: 'yes',
    HostKeyAlgorithms: 'ssh-ed25519',
    PreferredAuthentications: 'publickey',
    LogLevel: 'ERROR',
  };
  const lines = Object.entries(options).map(([option, value]) => `  ${option} ${quoteValue(value)}\n`);
  return `Host ${name}\n${lines.join('')}`;
}

/** Returns the command that adds (`forward`) or removes (`cancel`) a forward, or checks the connection (`check`). */
export function control(
  places: Pick<QemuPlaces, 'key' | 'knownHosts' | 'control'>,
  port: number,
  order: 'check' | 'forward' | 'cancel' | 'exit',
  ...more: string[]
): string[] {
  return throughMaster(places, port, '-O', order, ...more, HOST);
}

/** Escapes a value for ssh configuration syntax, where blanks separate values and `%` and `$` expand. */
function quoteValue(value: string): string {
  const literal = value.replaceAll('%', '%%');
  return /[\s"]/.test(literal) ? `"${literal.replaceAll('"', '\\"')}"` : literal;
}
