import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { GuestImage } from '../src/drivers/guest-images/image.ts';
import { accelerators } from '../src/drivers/machines/qemu/accelerator.ts';
import { qemuArguments } from '../src/drivers/machines/qemu/arguments.ts';
import { openQmp, type Qmp } from '../src/drivers/machines/qemu/monitor.ts';
import { qemuPlaces } from '../src/drivers/machines/qemu/places.ts';
import { ownHost } from '../src/drivers/machines/qemu/support.ts';
import { run as runProgram } from '../src/os/run.ts';

const POLL_MS = 100;
const LIMIT_MS = 600_000;
const execute = promisify(execFile);

/** A guest of the same image and flags as a machine of ours, driven by nothing but a script: QEMU, ssh, and dockerd as Debian starts it. */
export interface BareMachine {
  /** From nothing that runs to a guest that takes commands. */
  boot(): Promise<void>;
  /** From a guest that takes commands to dockerd answering on a socket of this host. */
  engine(): Promise<void>;
  guest(...argv: string[]): Promise<string>;
  /** Orders for QEMU itself. */
  qmp(work: (qmp: Qmp) => Promise<void>): Promise<void>;
  /** The disk that is kept. */
  readonly data: string;
  /** Power button, then gone. */
  powerDown(): Promise<void>;
  remove(): void;
}

export interface BareOptions {
  image: GuestImage;
  memoryGiB: number;
  memoryCeilingGiB: number;
  cpus: number;
  cpuCeiling: number;
  diskBytes: number;
}

export async function bareMachine(options: BareOptions): Promise<BareMachine> {
  const directory = mkdtempSync(join(tmpdir(), 'rdctl-bare-'));
  const places = qemuPlaces(directory, directory);
  mkdirSync(places.run, { recursive: true });
  for (const key of [places.key, places.hostKey])
    await execute('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  writeFileSync(places.hostname, 'bare');
  const disk = join(options.image.directory, options.image.files.disk.name);
  await execute('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', disk, '-F', 'qcow2', places.disk]);
  await execute('qemu-img', ['create', '-q', '-f', 'qcow2', places.data, String(options.diskBytes)]);
  const host = ownHost();
  const { accelerator } = await accelerators(host, directory, runProgram)(new AbortController().signal);
  const socket = join(places.run, 'docker.sock');
  let port = 0;
  let qemu: ChildProcess | undefined;
  let tunnel: ChildProcess | undefined;

  const ssh = () => {
    const never = [
      'StrictHostKeyChecking=no',
      'UserKnownHostsFile=/dev/null',
      'IdentitiesOnly=yes',
      'LogLevel=ERROR',
      'ConnectTimeout=5',
    ];
    return [
      '-F',
      'none',
      '-i',
      places.key,
      '-p',
      String(port),
      ...never.flatMap((option) => ['-o', option]),
      'root@127.0.0.1',
    ];
  };
  const guest = async (...argv: string[]) => (await execute('ssh', [...ssh(), ...argv])).stdout;

  async function until(what: string, there: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + LIMIT_MS;
    while (!(await there())) {
      if (qemu?.exitCode !== null) throw new Error(`QEMU exited while waiting for ${what}`);
      if (performance.now() > deadline) throw new Error(`${what} did not come`);
      await sleep(POLL_MS);
    }
  }

  return {
    guest,
    async qmp(work) {
      const qmp = await openQmp(places.monitor);
      await work(qmp).finally(() => qmp.close());
    },
    data: places.data,
    async boot() {
      port = await freePort();
      const [program = '', ...args] = qemuArguments({ ...options, host, places, accelerator, sshPort: port });
      qemu = spawn(program, args, { stdio: 'ignore' });
      await until('the guest', () =>
        guest('true').then(
          () => true,
          () => false,
        ),
      );
    },
    async engine() {
      await guest('systemctl', 'start', 'docker');
      tunnel = spawn('ssh', ['-N', '-o', 'StreamLocalBindUnlink=yes', '-L', `${socket}:/run/docker.sock`, ...ssh()], {
        stdio: 'ignore',
      });
      await until('dockerd', () => pings(socket));
    },
    async powerDown() {
      tunnel?.kill();
      await guest('systemctl', 'poweroff').catch(() => undefined);
      while (qemu && qemu.exitCode === null) await sleep(POLL_MS);
    },
    remove() {
      tunnel?.kill();
      qemu?.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Whether dockerd answers on the socket. */
export function pings(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({ socketPath, path: '/_ping', timeout: 5_000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.once('error', () => resolve(false));
    asked.once('timeout', () => asked.destroy());
    asked.end();
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
