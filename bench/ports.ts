import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NETWORK } from '../src/drivers/machines/qemu/arguments.ts';
import { openQmp } from '../src/drivers/machines/qemu/monitor.ts';
import { type QemuPlaces, qemuPlaces } from '../src/drivers/machines/qemu/places.ts';
import { readQemuRecord } from '../src/drivers/machines/qemu/record.ts';
import { guestLogin, sshConfigBlock } from '../src/drivers/machines/qemu/ssh.ts';
import { runtimeDirectory } from '../src/os/user-directories.ts';
import { compare, type Result, result } from './measure.ts';
import { benchImage, inGuest, MACHINE, openMachine } from './our-machine.ts';

/** The port in the guest, and so the one that we forward. */
const PORT = 18_080;
/** A request is a line with the number of bytes to send back. */
const SERVER = `use IO::Socket::INET; use IO::Select;
my $server = IO::Socket::INET->new(LocalPort => ${PORT}, Listen => 64, ReuseAddr => 1) or die;
my $all = IO::Select->new($server);
my $block = "x" x 65536;
while (my @ready = $all->can_read) {
  for my $socket (@ready) {
    if ($socket == $server) { $all->add($server->accept); next }
    my $text;
    if (!sysread($socket, $text, 99)) { $all->remove($socket); close $socket; next }
    for (my $left = int($text); $left > 0;) { $left -= syswrite($socket, $block, $left > 65536 ? 65536 : $left) || last }
  }
}`;
const SMALL = 64;
const LARGE = 4 * 2 ** 20;
/** Of each kind, for a large transfer. */
const SMALL_REQUESTS = 10;
const never = new AbortController().signal;

/** Milliseconds of every attempt, one after the other by way: figures with the same index were taken together. */
type Samples = Record<'ours' | 'plain' | 'direct', number[]>;

/**
 * A forwarded port of a machine of ours, by its ssh connection, against a port that `ssh -L` forwards from the same guest over a connection of
 * its own, and one that QEMU forwards.
 */
export async function ports(rounds: number): Promise<Result[]> {
  const { driver, home, directory } = await openMachine(await benchImage());
  let tunnel: ChildProcess | undefined;
  try {
    await driver.machine.perform({ do: 'start', spec: MACHINE }, never);
    await inGuest(driver, `systemd-run --quiet perl -e '${SERVER}'`);
    while (!driver.published?.().some(({ port, state }) => port === PORT && state === 'forwarded')) {
      await driver.machine.observe(never);
      await sleep(500);
    }
    const [plain, direct] = [await freePort(), await freePort()];
    const places = qemuPlaces(directory, runtimeDirectory(process.getuid?.() ?? 0));
    tunnel = await plainTunnel(places, home, plain);
    await forwardByQemu(places.monitor, direct);
    const at = { ours: PORT, plain, direct };
    const open = { ours: await opened(PORT), plain: await opened(plain), direct: await opened(direct) };
    const requests = await inTurn(rounds * SMALL_REQUESTS, (name) => asked(open[name], SMALL));
    const connections = await inTurn(rounds * SMALL_REQUESTS, async (name) => {
      const socket = await opened(at[name]);
      await asked(socket, SMALL);
      socket.destroy();
    });
    const transfers = await inTurn(rounds, (name) => asked(open[name], LARGE));
    for (const socket of Object.values(open)) socket.destroy();
    return (['plain', 'direct'] as const).flatMap((reference) => {
      const line = (name: string, samples: Samples, aim: number) =>
        result({
          name: `port: ${name}`,
          compared: reference === 'plain' ? 'over our ssh / a plain ssh -L' : 'over our ssh / hostfwd of QEMU',
          ...compare(samples.ours, samples[reference]),
          aim: { sign: '<=', value: aim },
          unit: 'ms',
          rounds: samples.ours.length,
        });
      const aims = AIMS[reference];
      return [
        line('a request of an open connection', requests, aims.request),
        line('a connection and a request', connections, aims.connection),
        line(`${LARGE / 2 ** 20} MiB`, transfers, aims.transfer),
      ];
    });
  } finally {
    tunnel?.kill();
    await driver.machine.perform({ do: 'stop' }, never);
    await driver.release?.();
    rmSync(home, { recursive: true, force: true });
  }
}

const AIMS = {
  plain: { request: 1.2, connection: 1.2, transfer: 1.2 },
  direct: { request: 8, connection: 4, transfer: 2 },
} as const;

/** Attempts in turn, so that other work on this computer hits all ways; whoever comes second finds warmer caches. */
async function inTurn(rounds: number, attempt: (name: keyof Samples) => Promise<unknown>): Promise<Samples> {
  const samples: Samples = { ours: [], plain: [], direct: [] };
  const names = ['ours', 'plain', 'direct'] as const;
  for (const name of names) await attempt(name);
  for (let round = 0; round < rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : [...names].reverse()) {
      const begun = performance.now();
      await attempt(name);
      samples[name].push(performance.now() - begun);
    }
  }
  return samples;
}

/** `ssh -L` as a user runs it, with what `rdctl ssh-config` prints. Resolves once it forwards. */
async function plainTunnel(places: QemuPlaces, home: string, port: number): Promise<ChildProcess> {
  const record = await readQemuRecord(places.record);
  if (record === undefined || record === 'damaged') throw new Error('the machine has no record');
  const config = join(home, 'ssh-config');
  writeFileSync(config, sshConfigBlock('guest', guestLogin(places, record.sshPort)));
  const forward = `127.0.0.1:${port}:127.0.0.1:${PORT}`;
  const tunnel = spawn('ssh', ['-F', config, '-N', '-L', forward, 'guest'], { stdio: 'ignore' });
  const connects = () =>
    opened(port).then(
      (socket) => socket.destroy(),
      () => undefined,
    );
  while ((await connects()) === undefined) {
    if (tunnel.exitCode !== null) throw new Error('the plain ssh exited');
    await sleep(100);
  }
  return tunnel;
}

async function forwardByQemu(monitor: string, port: number): Promise<void> {
  const qmp = await openQmp(monitor);
  const line = `hostfwd_add ${NETWORK} tcp:127.0.0.1:${port}-:${PORT}`;
  await qmp.execute('human-monitor-command', { 'command-line': line }).finally(() => qmp.close());
}

function opened(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true }, () => resolve(socket));
    socket.once('error', reject);
  });
}

/** Until so many bytes have come back. */
function asked(socket: Socket, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = bytes;
    const onData = (chunk: Buffer) => {
      left -= chunk.length;
      if (left > 0) return;
      socket.off('data', onData).off('close', onClose);
      resolve();
    };
    const onClose = () => reject(new Error(`the connection ended ${left} bytes too early`));
    socket.on('data', onData).on('close', onClose);
    socket.write(`${bytes}\n`);
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
