import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { liveCopies } from '../../src/drivers/machines/qemu/live-copy.ts';
import { qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { RdError } from '../../src/errors.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const never = new AbortController().signal;

interface ScriptedJob {
  id: string;
  status: string;
  'current-progress': number;
  'total-progress': number;
  error?: string;
}

/** A scripted QEMU, guest and `qemu-img`; `done` has all calls in order. */
async function scene() {
  const directory = temporaryDirectory();
  const places = qemuPlaces(directory, '/nowhere');
  mkdirSync(places.run);
  writeFileSync(places.data, 'the disk');
  const memo = join(directory, 'memo');
  const done: string[] = [];
  const world = {
    alive: true,
    answers: true,
    status: 'running',
    frozen: false,
    /** The guest's own watchdog has thawed it. */
    thawsByItself: false,
    jobs: [] as ScriptedJob[],
    nodes: ['data0'],
    /** The state of a job at each query. */
    moves: ['running', 'running', 'concluded'],
    error: '',
    refuses: '',
    silentFor: 0,
    /** QEMU forgets its jobs. */
    loses: false,
    time: 0,
    /** Called at each sleep. */
    meanwhile: () => {},
  };

  function answer(command: string, args: Record<string, unknown>): unknown {
    const [job] = world.jobs;
    switch (command) {
      case 'query-status':
        return { status: world.status };
      case 'query-named-block-nodes':
        return world.nodes.map((name) => ({ 'node-name': name, image: { 'virtual-size': 4096 } }));
      case 'query-jobs':
        if (world.loses) world.jobs = [];
        if (job && job.status !== 'concluded') {
          const status = world.moves.shift() ?? 'concluded';
          Object.assign(job, { status, 'current-progress': job['current-progress'] + 25 });
          if (status === 'concluded' && world.error !== '') job.error = world.error;
        }
        return world.jobs;
      case 'blockdev-add':
        world.nodes.push(String(args['node-name']));
        return {};
      case 'blockdev-del':
        world.nodes = world.nodes.filter((name) => name !== args['node-name']);
        return {};
      case 'blockdev-backup':
        expect(args).toMatchObject({
          device: 'data0',
          sync: 'top',
          'on-target-error': 'report',
          'auto-dismiss': false,
        });
        done.push(world.frozen ? 'moment' : 'moment of a guest that writes');
        world.jobs.push({
          id: String(args['job-id']),
          status: 'running',
          'current-progress': 0,
          'total-progress': 100,
        });
        return {};
      case 'job-cancel':
        world.moves = ['aborting', 'concluded'];
        return {};
      case 'job-dismiss':
        world.jobs = [];
        return {};
      case 'cont':
        world.status = 'running';
        return {};
      default:
        return {};
    }
  }

  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (world.silentFor > 0) {
      world.silentFor -= 1;
      socket.destroy();
      return;
    }
    socket.write('{"QMP": {}}\n');
    socket.on('data', (data: Buffer) => {
      for (const line of data.toString().split('\n').filter(Boolean)) {
        const { execute, arguments: args = {}, id } = JSON.parse(line);
        if (!execute.startsWith('q')) done.push(execute);
        const said = execute === world.refuses ? { error: { desc: 'no' } } : { return: answer(execute, args) };
        socket.write(`${JSON.stringify({ id, ...said })}\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(places.monitor, resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));

  const logged: string[] = [];
  const copies = liveCopies({
    places,
    monitor: qemuMonitor(places.monitor),
    guest: {
      async run(_argv, options = {}) {
        const freezes = String(options.input).includes('systemd-run');
        done.push(freezes ? 'freeze' : 'thaw');
        if (freezes && world.refuses === 'freeze') throw new RdError('ERR_DRIVER_FAILED', 'sh ended with status 1');
        const was = world.frozen && !world.thawsByItself;
        world.frozen = freezes;
        return { exitCode: freezes || was ? 0 : 1, stdout: '', stderr: '' };
      },
    },
    async run(argv, options) {
      done.push(`${argv[0]} ${argv[1]}`);
      expect(argv.at(-1)).toBe('4096');
      // QEMU can create files in no other directory.
      expect(dirname(String(argv.at(-2)))).toBe(places.copies);
      expect(options?.access).toEqual({ writes: [argv.at(-2)] });
      writeFileSync(String(argv.at(-2)), 'a copy');
      return { exitCode: 0, stdout: '', stderr: '' };
    },
    clock: {
      now: () => world.time,
      async sleep(ms) {
        world.time += ms;
        world.meanwhile();
      },
    },
    isAlive: async () => world.alive,
    answers: async () => world.answers,
    log: (_level, message) => void logged.push(message),
  });
  const to = join(directory, 'target');
  const pairs = [
    { from: places.data, to },
    { from: memo, to: join(directory, 'memo-copy') },
  ];
  return { directory, places, memo, done, world, copies, logged, to, pairs };
}

const leftovers = ({ directory }: { directory: string }) =>
  readdirSync(directory).filter((name) => !['run', 'data.qcow2', 'memo', 'copies'].includes(name));

test('copies the disk as of a moment at which the guest is frozen, and the guest continues at once', async () => {
  const at = await scene();
  writeFileSync(at.memo, 'what is installed');
  const shares: number[] = [];
  await at.copies.copy(at.pairs, never, (share) => shares.push(share));
  expect(at.done.filter((what) => what !== 'qmp_capabilities')).toEqual([
    'qemu-img create',
    'blockdev-add',
    'freeze',
    'blockdev-backup',
    'moment',
    'thaw',
    'job-dismiss',
    'blockdev-del',
  ]);
  expect(shares).toEqual([0.25, 0.5, 1]);
  expect(at.world).toMatchObject({ frozen: false, jobs: [], nodes: ['data0'] });
  expect(leftovers(at).sort()).toEqual(['memo-copy', 'target']);
  expect(readFileSync(at.to, 'utf8')).toBe('a copy');
  expect(readdirSync(at.places.copies)).toEqual([]);
  expect(readFileSync(join(at.directory, 'memo-copy'), 'utf8')).toBe('what is installed');
});

test('a draft that a killed service left goes with its job, and its directory, which QEMU has open, stays', async () => {
  const at = await scene();
  mkdirSync(at.places.copies);
  const { ino } = statSync(at.places.copies);
  writeFileSync(join(at.places.copies, 'data.qcow2'), 'half a copy');
  writeFileSync(at.places.liveCopy, '');
  await at.copies.settle();
  expect(readdirSync(at.places.copies)).toEqual([]);
  expect(statSync(at.places.copies).ino).toBe(ino);
});

test.skipIf(!existsSync('/dev/shm'))('a copy reaches a target in another file system', async () => {
  const at = await scene();
  const elsewhere = [realpathSync(tmpdir()), '/dev/shm', '/tmp'].find(
    (each) => statSync(each).dev !== statSync(at.directory).dev,
  );
  const to = join(temporaryDirectory(elsewhere), 'target');
  await at.copies.copy([{ from: at.places.data, to }], never);
  expect(readFileSync(to, 'utf8')).toBe('a copy');
  expect(readdirSync(at.places.copies)).toEqual([]);
});

test('skips what is missing, and does not ask QEMU when there is no disk', async () => {
  const at = await scene();
  await at.copies.copy(at.pairs.slice(1), never);
  expect(leftovers(at)).toEqual([]);
  expect(at.done).toEqual(['freeze', 'thaw']);
});

test('leaves the monitor to others between its queries', async () => {
  const at = await scene();
  const monitor = qemuMonitor(at.places.monitor);
  const seen: Promise<string>[] = [];
  at.world.meanwhile = () => void seen.push(monitor.status(never));
  await at.copies.copy(at.pairs, never);
  expect(await Promise.all(seen)).toEqual(['running', 'running']);
});

test('waits for a silent QEMU, with a limit', async () => {
  const at = await scene();
  let asleep = 0;
  at.world.meanwhile = () => {
    asleep += 1;
    if (asleep === 1) at.world.silentFor = 3;
  };
  await at.copies.copy(at.pairs, never);

  const dumb = await scene();
  dumb.world.meanwhile = () => {
    dumb.world.silentFor = 1;
  };
  await expect(dumb.copies.copy(dumb.pairs, never)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  // What QEMU still does with it is left to the next observation.
  expect(leftovers(dumb)).toEqual(['live-copy']);
  expect(dumb.logged).toEqual([expect.stringContaining('could not be cleaned up')]);
});

test.each<[string, object, RegExp]>([
  ['a guest that cannot be frozen', { refuses: 'freeze' }, /could not be frozen/],
  ['a guest that went on by itself', { thawsByItself: true }, /did not stay frozen/],
  ['a QEMU that refuses the copy', { refuses: 'blockdev-backup' }, /QEMU refused: no/],
  ['a QEMU that refuses the target', { refuses: 'blockdev-add' }, /QEMU refused: no/],
  ['a copy that fails', { error: 'Input/output error' }, /Input\/output error/],
  ['a job that is gone', { loses: true }, /no longer has the copy/],
])('leaves nothing behind after %s, and the guest continues', async (_what, change, message) => {
  const at = await scene();
  writeFileSync(at.memo, 'x');
  Object.assign(at.world, change);
  await expect(at.copies.copy(at.pairs, never)).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringMatching(message),
  });
  expect(at.world).toMatchObject({ frozen: false, jobs: [], nodes: ['data0'] });
  expect(leftovers(at)).toEqual([]);
});

test('ends when a disk fills up, and the guest that halted for it continues', async () => {
  const at = await scene();
  at.world.error = 'No space left on device';
  at.world.meanwhile = () => void Object.assign(at.world, { status: 'io-error' });
  await expect(at.copies.copy(at.pairs, never)).rejects.toMatchObject({
    message: 'QEMU could not copy the data disk: No space left on device',
    advice: expect.stringContaining('space'),
  });
  expect(at.done.indexOf('cont')).toBeGreaterThan(at.done.indexOf('blockdev-del'));
  expect(at.world.status).toBe('running');
  expect(existsSync(at.to)).toBe(false);
});

test('cancels the job in QEMU and removes the target', async () => {
  const at = await scene();
  const abort = new AbortController();
  at.world.meanwhile = () => abort.abort();
  await expect(at.copies.copy(at.pairs, abort.signal)).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  expect(at.done).toContain('job-cancel');
  expect(at.world).toMatchObject({ frozen: false, jobs: [], nodes: ['data0'] });
  expect(leftovers(at)).toEqual([]);
});

test('reports a QEMU that ends halfway', async () => {
  const at = await scene();
  at.world.meanwhile = () => {
    at.world.alive = false;
    at.world.silentFor = 1;
  };
  await expect(at.copies.copy(at.pairs, never)).rejects.toMatchObject({
    message: 'QEMU exited while copying the data disk',
  });
  expect(leftovers(at)).toEqual([]);
});

test('refuses a machine that is off or does not respond, a second copy, and an existing target', async () => {
  const at = await scene();
  at.world.answers = false;
  await expect(at.copies.copy(at.pairs, never)).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  Object.assign(at.world, { answers: true, alive: false });
  await expect(at.copies.copy(at.pairs, never)).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  at.world.alive = true;
  const first = at.copies.copy(at.pairs, never);
  await expect(at.copies.copy(at.pairs, never)).rejects.toMatchObject({ message: expect.stringContaining('another') });
  await first;
  await expect(at.copies.copy(at.pairs, never)).rejects.toMatchObject({ code: 'ERR_IO' });
  expect(readFileSync(at.to, 'utf8')).toBe('a copy');
});

test('what a killed service left is ended once, by an observation or before the next copy', async () => {
  for (const how of ['look', 'copy'] as const) {
    const at = await scene();
    const left = () => {
      writeFileSync(at.places.liveCopy, '');
      at.world.jobs = [{ id: 'rdctl-copy', status: 'running', 'current-progress': 0, 'total-progress': 1 }];
      at.world.nodes = ['data0', 'rdctl-copy0'];
      at.world.frozen = true;
    };
    left();
    if (how === 'copy') await at.copies.copy(at.pairs, never);
    else await Promise.all([at.copies.settle(), at.copies.settle()]);
    expect(at.done.filter((what) => what === 'job-cancel')).toEqual(['job-cancel']);
    expect(at.world).toMatchObject({ frozen: false, jobs: [], nodes: ['data0'] });
    expect(existsSync(at.places.liveCopy)).toBe(false);
    const { length } = at.done;
    await at.copies.settle();
    expect(at.done).toHaveLength(length);
  }
});

test('an observation during a copy of this process leaves it alone', async () => {
  const at = await scene();
  at.world.meanwhile = () => void at.copies.settle();
  await at.copies.copy(at.pairs, never);
  expect(at.done).not.toContain('job-cancel');
});

test('what cannot be ended yet is reported, and retried by the next observation', async () => {
  const at = await scene();
  writeFileSync(at.places.liveCopy, '');
  at.world.jobs = [{ id: 'rdctl-copy', status: 'running', 'current-progress': 0, 'total-progress': 1 }];
  at.world.refuses = 'job-dismiss';
  await at.copies.settle();
  expect(at.logged).toEqual([expect.stringContaining('could not be canceled')]);
  expect(existsSync(at.places.liveCopy)).toBe(true);
  at.world.refuses = '';
  await at.copies.settle();
  expect(existsSync(at.places.liveCopy)).toBe(false);
});

test('only the record is left of a QEMU that is gone', async () => {
  const at = await scene();
  writeFileSync(at.places.liveCopy, '');
  at.world.alive = false;
  await at.copies.settle();
  expect(existsSync(at.places.liveCopy)).toBe(false);
  expect(at.done).not.toContain('job-cancel');
});
