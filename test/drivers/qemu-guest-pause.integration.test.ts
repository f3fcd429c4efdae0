import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type NetConnectOpts } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { guestPause } from '../../src/drivers/machines/qemu/pause/guest-pause.ts';
import { guestPauses } from '../../src/drivers/machines/qemu/pause/pauses.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import type { Clock } from '../../src/os/clock.ts';
import { steadyClock } from '../../src/os/clock.ts';
import { findDaemon, signalDaemon, startDaemon, stopDaemon } from '../../src/os/daemon.ts';
import { acceptsConnections } from '../../src/os/socket.ts';
import { freePort } from '../helpers/free-port.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { scriptedMonitor, scriptedWorld } from './scripted-qemu.ts';

const signal = new AbortController().signal;
const POLL = { timeout: 20_000, interval: 20 };

/** In place of ssh: answers what connects to these sockets and ports, as a guest would through it. */
const LISTENER = `for (const at of process.argv.slice(1)) {
  const server = require('node:net').createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => socket.end('answer to ' + data));
  });
  server.listen(at.startsWith('/') ? { path: at } : { host: '127.0.0.1', port: Number(at) });
}`;

/** Time that passes ten times faster. */
const fast: Clock = { now: () => steadyClock.now() * 10, sleep: (ms, abort) => steadyClock.sleep(ms / 10, abort) };

/** What a server sends to a client that says its name; undefined while it does not answer. */
function client(at: NetConnectOpts, name: string) {
  const socket = connect(at);
  let text = '';
  socket.on('data', (data) => {
    text += String(data);
  });
  socket.on('error', () => undefined);
  socket.write(name);
  onTestFinished(() => void socket.destroy());
  return { socket, said: () => text };
}

/** A machine that is on: idle programs in place of QEMU and of the home directory's ssh, and a listener in place of ssh. */
async function scene() {
  const directory = temporaryDirectory();
  const places = qemuPlaces(directory, '/nowhere');
  mkdirSync(places.run);
  const [sshPort, published] = [await freePort(), await freePort()];
  const homeDaemon = join(directory, 'home.pid.json');
  const docker = join(places.run, 'moby-docker.sock');
  const world = scriptedWorld();
  const said: string[] = [];
  const monitor = await scriptedMonitor(world, places.monitor, (command) => {
    if (command === 'stop' && world.refuses.stop === undefined) world.status = 'paused';
    if (['stop', 'cont', 'qom-set'].includes(command)) said.push(command);
    return true;
  });
  const daemon = async (recordFile: string, argv: string[]) => {
    await startDaemon({ argv, recordFile, logFile: join(directory, 'log'), env: process.env });
    onTestFinished(async () => {
      await signalDaemon(recordFile, 'SIGCONT');
      await stopDaemon(recordFile, { graceMs: 2_000, clock: steadyClock });
    });
  };
  onTestFinished(async () => void (await new Promise((resolve) => monitor.close(resolve))));
  for (const record of [places.qemuRecord, homeDaemon]) {
    writeFileSync(`${record}.idle`, '');
    await daemon(record, ['tail', '-f', `${record}.idle`]);
  }
  await daemon(places.sshRecord, [process.execPath, '-e', LISTENER, docker, String(sshPort), String(published)]);
  for (const at of [{ path: docker }, { port: sshPort }, { port: published }]) {
    await expect.poll(() => acceptsConnections(at), POLL).toBe(true);
  }
  // ssh's own connection to the guest, and that of the home directory.
  const own = [1, 2].map(() => connect({ host: '127.0.0.1', port: sshPort }));
  onTestFinished(() => own.forEach((socket) => void socket.destroy()));
  await Promise.all(own.map((socket) => once(socket, 'connect')));
  // One that breaks when ssh is stopped is no failure.
  for (const socket of own) socket.on('error', () => undefined);
  const up = { value: true };
  const parts = guestPause({
    places,
    guest: {
      isConnected: async () => world.status === 'running',
      async run(argv) {
        said.push(argv[0] === 'date' ? 'date' : 'clock set');
        return { exitCode: 0, stdout: '0\n', stderr: '' };
      },
      sessions: () => 0,
    },
    monitor: qemuMonitor(places.monitor),
    mounts: { connections: async () => [homeDaemon] },
    ports: {
      published: () => [{ protocol: 'tcp', port: published, state: 'forwarded', addresses: ['127.0.0.1'] }],
    },
    lines: { held: () => 0 },
    port: async () => sshPort,
    isUp: async () => up.value,
    emulatedStart: async () => undefined,
    clock: fast,
    log: () => undefined,
  });
  /** `S` sleeps, `T` is halted. */
  const stateOf = async (record: string) => {
    const found = await findDaemon(record);
    return found.state === 'running' ? readFileSync(`/proc/${found.pid}/stat`, 'utf8').split(') ')[1]?.[0] : 'gone';
  };
  /** Signals take effect when the process is scheduled. */
  const expectStates = (expected: 'SS' | 'TT') =>
    expect.poll(async () => [await stateOf(places.sshRecord), await stateOf(homeDaemon)].join(''), POLL).toBe(expected);
  return { world, said, parts, docker: { path: docker }, published, sshPort, expectStates, up, monitor };
}

/** The same, paused for lack of use. */
async function pausedScene() {
  const here = await scene();
  const pauses = guestPauses(here.parts);
  onTestFinished(() => pauses.release());
  pauses.setLimit(1);
  const observe = () =>
    pauses.observe(
      async () => undefined,
      async () => undefined,
    );
  await observe();
  await expect.poll(async () => (pauses.current() ? 'paused' : observe()), { ...POLL, interval: 500 }).toBe('paused');
  await here.expectStates('TT');
  expect(here.said).toEqual(['stop']);
  return { ...here, pauses };
}

/** QEMU is asked for the memory of the guest, too: its last report is as old as the pause. */
const WOKEN = ['cont', 'qom-set', 'qom-set', 'date', 'clock set'];
const AWAKE = ['stop', ...WOKEN];

test('a client of a paused machine connects as always, waits for its answer, and gets it', async () => {
  const { docker, said, expectStates } = await pausedScene();
  const { said: answer } = client(docker, 'docker ps');
  await expect.poll(answer, POLL).toBe('answer to docker ps');
  await expect.poll(() => said, POLL).toEqual(AWAKE);
  await expectStates('SS');
});

test('a published port and the port of ssh wake it as well', async () => {
  for (const door of ['published', 'sshPort'] as const) {
    const { [door]: port, said } = await pausedScene();
    const { said: answer } = client({ host: '127.0.0.1', port }, door);
    await expect.poll(answer, POLL).toBe(`answer to ${door}`);
    await expect.poll(() => said, POLL).toEqual(AWAKE);
  }
});

test('clients that come together are all answered, and one that does not wait harms none', async () => {
  const { docker, published, said } = await pausedScene();
  const gone = client(docker, 'hasty');
  await once(gone.socket, 'connect');
  gone.socket.destroy();
  const clients = [docker, docker, { host: '127.0.0.1', port: published }].map((at, index) =>
    client(at, String(index)),
  );
  for (const [index, { said: answer }] of clients.entries()) {
    await expect.poll(answer, POLL).toBe(`answer to ${index}`);
  }
  await expect.poll(() => said, POLL).toEqual(AWAKE);
});

test('a machine with a client is not paused, and neither is one that QEMU has halted', async () => {
  const { parts, docker, world, said, expectStates } = await scene();
  const pauses = guestPauses(parts);
  pauses.setLimit(1);
  const open = connect(docker);
  onTestFinished(() => void open.destroy());
  await once(open, 'connect');
  const checks = async () => {
    for (let check = 0; check < 3; check++) {
      await pauses.observe(
        async () => undefined,
        async () => undefined,
      );
      await delay(300);
    }
  };
  await checks();
  expect(said).toEqual([]);
  open.destroy();
  world.status = 'io-error';
  await checks();
  expect(said).toEqual([]);
  await expectStates('SS');
});

test('a pause that QEMU refuses leaves everything running', async () => {
  const { parts, world, expectStates } = await scene();
  world.refuses.stop = 'not now';
  await expect(parts.pause(signal)).rejects.toMatchObject({ message: expect.stringContaining('not now') });
  expect(world.status).toBe('running');
  await expectStates('SS');
});

test('when QEMU has ended, waking fails, and the programs of this host continue', async () => {
  const { parts, expectStates, monitor } = await scene();
  await parts.pause(signal);
  await expectStates('TT');
  monitor.close();
  await expect(parts.wake(signal)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  await expectStates('SS');
});

test.each([
  ['paused it', 'TT', 'paused', WOKEN],
  ['halted the connections, and not yet the guest', 'TT', 'running', []],
  ['halted the guest, and not yet the connections', 'SS', 'paused', WOKEN],
  ['did nothing of that', 'SS', 'running', []],
] as const)(
  'a service that was killed after it %s leaves a machine that the next one wakes',
  async (_, ssh, vm, done) => {
    const { parts, world, said, expectStates } = await scene();
    if (ssh === 'TT') await parts.pause(signal);
    world.status = vm;
    said.length = 0;
    await parts.wakeAbandoned(signal);
    expect(said).toEqual(done);
    expect(world.status).toBe('running');
    await expectStates('SS');
  },
);

test('nothing is woken in a machine that is off, or that is being started or stopped', async () => {
  const { parts, world, said, up } = await scene();
  world.status = 'paused';
  up.value = false;
  await parts.wakeAbandoned(signal);
  expect(said).toEqual([]);
});
