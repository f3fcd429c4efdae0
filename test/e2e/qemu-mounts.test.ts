import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { busyboxRoot } from '../helpers/busybox.ts';
import { engineJson, runContainer } from '../helpers/engine-client.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Two boots without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const POLL = { timeout: 600_000, interval: 2_000 };
const IMAGE = 'test/base:1';

const reason = await whyNoRealGuest();

/** The user's home directory in the guest, with the built tool. */
describe.skipIf(reason !== undefined)('host directories in a guest', () => {
  test(
    'are read and written by containers at their own path, over sshfs and virtiofs',
    async () => {
      const user = realpathSync(mkdtempSync(join(tmpdir(), 'rd home,')));
      onTestFinished(() => rmSync(user, { recursive: true, force: true }));
      const { home, rdctl, status } = toolHome({ HOME: user });
      linkImages(home);
      const directory = join(home, 'state', 'drivers', 'qemu');
      await prepareMachine(directory);
      const shared = async () => (await status()).machine.shared;
      const container = async (script: string) => {
        const { engine } = await status();
        const command = ['/bin/busybox', 'sh', '-c', script];
        return runContainer(engine.endpoint ?? '', { image: IMAGE, command, binds: [`${user}:/home`] });
      };
      writeFileSync(join(user, 'from-host'), 'hello\n');

      expect(await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu')).toMatchObject({ exit: 0 });
      const { engine } = await status();
      await engineJson(engine.endpoint ?? '', 'POST', `/images/create?fromSrc=-&repo=test/base&tag=1`, busyboxRoot());
      expect(await shared()).toMatchObject({ path: user, by: 'reverse-sshfs' });
      expect(await container('cat /home/from-host; echo back > /home/from-guest')).toEqual({
        status: 0,
        output: 'hello\n',
      });
      expect(readFileSync(join(user, 'from-guest'), 'utf8')).toBe('back\n');
      expect(statSync(join(user, 'from-guest')).uid).toBe(process.getuid?.());
      expect(await rdctl('shell', 'cat', join(user, 'from-host'))).toEqual({ exit: 0, out: 'hello\n', err: '' });
      // A user's home directory can be /root: neither image nor boot puts anything there.
      expect(await rdctl('shell', 'ls', '-A', '/root')).toEqual({ exit: 0, out: '', err: '' });

      // Further directories, while engine and containers keep running.
      const [data, secret] = [realpathSync(mkdtempSync(join(tmpdir(), 'rd data,'))), join(user, 'secret')];
      onTestFinished(() => rmSync(data, { recursive: true, force: true }));
      mkdirSync(secret);
      for (const directory of [data, secret]) writeFileSync(join(directory, 'file'), 'there\n');
      const file = join(home, 'profile.json');
      const profile = (mounts: object) => {
        const settings = { version: 19, kubernetes: { enabled: false } };
        writeFileSync(file, JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', settings, machine: { mounts } }));
        return rdctl('apply', '-f', file);
      };
      const { restarts } = (await status()).counters;
      const app = join(user, 'app');
      mkdirSync(app);
      const modes = { '~/app': 'writable-notify', '~/secret': 'none' };
      const mounts = { ...modes, [data]: 'read-only', [join(data, 'gone')]: 'writable' };
      expect(await profile({ '/etc': 'read-only' })).toMatchObject({
        exit: 3,
        err: expect.stringContaining('/etc itself'),
      });
      expect(await profile(mounts)).toMatchObject({ exit: 0 });
      const others = (by: string) => [
        { path: data, mode: 'read-only', by },
        { path: app, mode: 'writable-notify', by },
        { path: secret, mode: 'none' },
        { path: join(data, 'gone'), missing: expect.stringContaining('is not a directory') },
      ];
      expect(await shared()).toMatchObject({ mounts: [{ path: user }, ...others('reverse-sshfs')] });
      // The guest cannot lift it: the server on this host refuses, too.
      const write = `cat '${data}/file'; mount -i -o remount,rw '${data}'; echo no > '${data}/new'; ls -A '${secret}'`;
      expect(await rdctl('shell', 'sh', '-c', write)).toMatchObject({ exit: 0, out: 'there\n' });
      expect(readdirSync(data)).toEqual(['file']);
      expect(await container('cat /home/secret/file 2>/dev/null || echo covered')).toMatchObject({
        output: 'covered\n',
      });

      // A program there notices what changes here: inotify_init, inotify_add_watch with IN_ATTRIB.
      const watch =
        'my $fd = syscall 253; syscall 254, $fd, $ARGV[0], 4; open my $in, "<&=", $fd; sysread $in, my $event, 99';
      let isOver = false;
      const noticed = rdctl('shell', 'timeout', '60', 'perl', '-e', watch, app).finally(() => {
        isOver = true;
      });
      await expect
        .poll(() => {
          writeFileSync(join(app, 'file'), String(Date.now()));
          return isOver;
        }, POLL)
        .toBe(true);
      expect(await noticed).toMatchObject({ exit: 0 });

      // A directory in use stays.
      expect(
        await rdctl('shell', 'setsid', '-f', 'sh', '-c', `cd '${data}'; exec sleep 600 >/dev/null 2>&1`),
      ).toMatchObject({ exit: 0 });
      expect(await profile({ [data]: null })).toMatchObject({
        exit: 1,
        err: expect.stringMatching(/is in use in the machine by sleep \(pid/),
      });
      expect(await rdctl('shell', 'cat', join(data, 'file'))).toMatchObject({ out: 'there\n' });
      expect(await rdctl('shell', 'pkill', '-x', 'sleep')).toMatchObject({ exit: 0 });
      expect(await profile({ [data]: null })).toMatchObject({ exit: 0 });
      expect((await rdctl('shell', 'ls', data)).out).toBe('');
      expect(await profile(mounts)).toMatchObject({ exit: 0 });
      expect((await status()).counters.restarts).toBe(restarts);

      // The client in the guest dies: it is restarted, and the machine stays up.
      const { counters } = await status();
      expect(await rdctl('shell', 'pkill', '-9', '-x', 'sshfs')).toMatchObject({ exit: 0 });
      await expect.poll(async () => (await status()).counters.steps, POLL).toBeGreaterThan(counters.steps);
      await expect.poll(async () => (await status()).converged, POLL).toBe(true);
      expect(await container('cat /home/from-guest')).toEqual({ status: 0, output: 'back\n' });
      expect((await status()).counters.restarts).toBe(counters.restarts);

      // What the image does not support is refused with a remedy, and nothing happens.
      const refused = await rdctl('set', '--virtual-machine.mount.type=9p');
      expect(refused).toMatchObject({ exit: 1, err: expect.stringContaining('rdctl image build --kernel generic') });

      expect(await rdctl('set', '--virtual-machine.mount.type=virtiofs')).toMatchObject({ exit: 0 });
      await expect
        .poll(async () => (await status()).converged && (await shared()), POLL)
        .toMatchObject({ path: user, mounts: [{ path: user }, ...others('virtiofs')] });
      expect(await rdctl('shell', 'sh', '-c', write)).toMatchObject({ exit: 0, out: 'there\n' });
      expect(readdirSync(data)).toEqual(['file']);
      expect(await container('cat /home/from-host; echo again > /home/from-guest')).toEqual({
        status: 0,
        output: 'hello\n',
      });
      expect(readFileSync(join(user, 'from-guest'), 'utf8')).toBe('again\n');

      // Its server on this host dies: QEMU cannot connect to another one, so the machine is restarted.
      const killed: { pid: number } = JSON.parse(readFileSync(join(directory, 'home.pid.json'), 'utf8'));
      const before = await status();
      process.kill(killed.pid, 'SIGKILL');
      await expect.poll(async () => (await status()).counters.steps, POLL).toBeGreaterThan(before.counters.steps);
      await expect.poll(async () => (await status()).converged, POLL).toBe(true);
      expect(await shared()).toMatchObject({ path: user, by: 'virtiofs' });
      expect(JSON.parse(readFileSync(join(directory, 'home.pid.json'), 'utf8')).pid).not.toBe(killed.pid);
      expect(await container('cat /home/from-guest; echo once more > /home/from-guest')).toEqual({
        status: 0,
        output: 'again\n',
      });
      expect(readFileSync(join(user, 'from-guest'), 'utf8')).toBe('once more\n');

      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      expect(() => statSync(join(directory, 'home.pid.json'))).toThrow('ENOENT');
    },
    LIMIT_MS,
  );
});
