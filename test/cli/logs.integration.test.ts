import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { run as runTool } from '../../cli/run.ts';
import { qemuShell } from '../../src/drivers/machines/qemu/shell.ts';
import { run } from '../../src/os/run.ts';
import { fakeIo, rdctl } from '../helpers/cli.ts';
import { guestRecords, writeState } from '../helpers/guest-records.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** As ssh treats its last argument: the remote shell parses it. The guest's logs are in `$THERE`. */
const SSH = `for line; do :; done
[[ " $* " == *" -T 127.0.0.1 "* ]] || exit 9
sh -c "\${line//\\/var\\/lib\\/rdctl\\/logs/$THERE}"`;

/** A home with these logs. */
function homeWith(driver: string, logs: Record<string, string>, settings: object = {}) {
  const home = temporaryDirectory();
  writeState(home, driver);
  for (const name of ['logs', 'config']) mkdirSync(join(home, name), { mode: 0o700 });
  for (const [name, text] of Object.entries(logs)) writeFileSync(join(home, 'logs', name), text);
  writeFileSync(join(home, 'config', 'settings.json'), JSON.stringify(settings));
  const env = { RDCTL_HOME: home };
  return { home, env, logs: (...args: string[]) => rdctl(['logs', ...args], { env }) };
}

/** A running machine with these logs in it. */
async function machineWith(logs: Record<string, string>, ssh = SSH) {
  const here = homeWith('qemu', {});
  const there = temporaryDirectory();
  for (const [name, text] of Object.entries(logs)) writeFileSync(join(there, name), text);
  const env = { ...here.env, THERE: there, PATH: await guestRecords(here.home, ssh) };
  return { ...here, there, env, logs: (...args: string[]) => rdctl(['logs', ...args], { env }) };
}

/** The command with `--follow`, until the test stops it as Ctrl-C does. */
function following(env: Record<string, string>, ...args: string[]) {
  const interrupt = new AbortController();
  const io = fakeIo({ env, signal: interrupt.signal });
  const exit = runTool(['logs', '-f', ...args], io, COMMANDS);
  const stop = () => {
    interrupt.abort();
    return exit;
  };
  onTestFinished(async () => void (await stop()));
  return { shows: (text: string | RegExp) => expect.poll(() => io.text.out).toMatch(text), stop, text: io.text };
}

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

test('the log of the service is the default, while it runs and afterwards, and is followed over its end', async () => {
  const { service, env, here } = await startService({ power: 'started' });
  const logs = (...args: string[]) => rdctl(['logs', ...args], { env });
  await expect.poll(async () => (await logs()).out).toContain('INFO  service started version=');
  const follower = following(env, 'service', '-n', '1');
  await follower.shows(/\n$/);
  await service.stop('the test says so');
  await follower.shows(/ INFO {2}stopping reason="the test says so"\n/);
  const last = await logs('-n', '1', '-o', 'json');
  expect(JSON.parse(last.out)).toMatchObject({ level: 30, msg: expect.any(String), time: expect.any(String) });
  renameSync(join(here.logs, 'service.log'), join(here.logs, 'service.1.log'));
  writeFileSync(
    join(here.logs, 'service.log'),
    '{"level":40,"time":"2030-01-01T00:00:00Z","msg":"after the rotation"}\n',
  );
  await follower.shows(/WARN {2}after the rotation\n$/);
  expect(await follower.stop()).toBe(130);
  expect(follower.text.err).toBe('');
  expect((await logs('-n', '2')).out).toMatch(/^\S+ \S+ INFO {2}.*\n\S+ \S+ WARN {2}after the rotation\n$/);
});

test('without -n there are a hundred lines, with --since all of that time', async () => {
  const line = (at: number) => `{"level":30,"time":"${minutesAgo(200 - at)}","msg":"line ${at}"}\n`;
  const lines = Array.from({ length: 200 }, (_, at) => line(at));
  const { logs } = homeWith('host', { 'service.log': lines.join('') });
  const numbers = async (...args: string[]) =>
    [...(await logs(...args)).out.matchAll(/line (\d+)/g)].map(([, at]) => Number(at));
  expect(await numbers()).toEqual(Array.from({ length: 100 }, (_, at) => at + 100));
  expect(await numbers('--since', '150m30s')).toHaveLength(150);
  expect(await numbers('--since', '150m', '-n', '3')).toEqual([197, 198, 199]);
  expect(await numbers('-n', '0')).toEqual([]);
});

test('with the host driver, the log of the engine is that of the chosen one, on this computer', async () => {
  const files = {
    'service.log': '',
    'dockerd.log': `time="${minutesAgo(60)}" level=info msg="an old one"\ntime="${minutesAgo(1)}" level=warning msg="of dockerd"\n`,
    'containerd.log': 'of containerd\n',
  };
  const moby = homeWith('host', files);
  expect((await moby.logs('engine')).out).toMatch(/^\S+ \S+ INFO {2}an old one\n\S+ \S+ WARN {2}of dockerd\n$/);
  expect((await moby.logs('engine', '--since', '10m')).out).toMatch(/^\S+ \S+ WARN {2}of dockerd\n$/);
  const containerd = homeWith('host', files, { containerEngine: { name: 'containerd' } });
  expect((await containerd.logs('engine')).out).toBe('of containerd\n');
  expect((await containerd.logs('dockerd')).out).toContain('of dockerd\n');
  const without = await containerd.logs('machine');
  expect(without).toMatchObject({ exit: 1, out: '' });
  expect(without.err).toBe(
    'Error: There is no log "machine" here: the host driver has neither a virtual machine nor a cluster.\n' +
      'Logs of this home: service, engine, dockerd, containerd.\n',
  );
});

test('with the qemu driver, the console is on this computer, and engine and cluster are read in the machine', async () => {
  const { home, there, env, logs } = await machineWith({
    'dockerd.log.1': 'rotated\n',
    'dockerd.log': `time="${minutesAgo(1)}" level=info msg="in the machine"\n`,
    'k3s.log': 'of k3s\n',
  });
  writeFileSync(join(home, 'state', 'drivers', 'qemu', 'serial.log'), 'Linux version\r\n\u001b[32m[ OK ]\u001b[0m\r\n');
  expect((await logs('machine')).out).toBe('Linux version\n[ OK ]\n');
  expect((await logs('engine')).out).toMatch(/^rotated\n\S+ \S+ INFO {2}in the machine\n$/);
  expect((await logs('engine', '-n', '1', '-o', 'json')).out).toMatch(
    /^\{"time":"2\S+Z","line":"time=.*in the machine\\""\}\n$/,
  );
  expect((await logs('engine', '--since', '1h')).out).toMatch(/^\S+ \S+ INFO {2}in the machine\n$/);
  expect((await logs('cluster')).out).toBe('of k3s\n');
  const missing = await logs('containerd');
  expect(missing).toMatchObject({ exit: 1, out: '' });
  expect(missing.err).toContain(
    'The log "containerd" has not been written yet: there is no /var/lib/rdctl/logs/containerd.log.',
  );

  const follower = following(env, 'engine', '-n', '1');
  await follower.shows('in the machine');
  appendFileSync(join(there, 'dockerd.log'), 'and more\n');
  await follower.shows(/and more\n$/);
  expect(follower.text.out).not.toContain('rotated');
  expect(await follower.stop()).toBe(130);
  expect(follower.text.err).toBe('');
  // Nothing remains in the machine.
  await expect
    .poll(async () =>
      (await run(['ps', '-axww', '-o', 'args='])).stdout
        .split('\n')
        .filter((line) => line.startsWith('tail') && line.includes(there)),
    )
    .toEqual([]);
  expect((await logs('engine', '-f', '-n', '1', '--since', '1m')).err).toContain('takes either --since or --lines');
});

test('the paths in the machine are those to which its programs write', async () => {
  const scripts: string[] = [];
  const guest = {
    onReconnect: () => undefined,
    run: async (argv: readonly string[], { input = '' }: { input?: string } = {}) => {
      scripts.push(`${argv.join(' ')}\n${input}`);
      return { exitCode: 0, stdout: '', stderr: '' };
    },
  };
  const parts = { guest, places: { id: '1', run: '/r' } } as unknown as Parameters<typeof qemuShell>[0];
  await qemuShell(parts).tail('dockerd');
  const { logs } = await machineWith({}, 'exit 255');
  expect((await logs('engine')).err).toContain('The virtual machine cannot be reached');
  const { LOGS, homeLogs } = await import('../../src/drivers/log-places.ts');
  const here = homeWith('qemu', {}).home;
  const places = await homeLogs({
    logs: join(here, 'logs'),
    state: join(here, 'state'),
    stateFile: join(here, 'state', 'state.json'),
    settingsFile: join(here, 'config', 'settings.json'),
  });
  expect(Object.keys(places.logs)).toEqual(Object.keys(LOGS));
  expect(scripts[0]).toContain(places.logs.engine?.files[0]);
});

test('a machine that is off says so, and so does a simulated desktop', async () => {
  const off = homeWith('qemu', {});
  expect(await off.logs('engine')).toMatchObject({
    exit: 1,
    err: expect.stringContaining('The virtual machine of this home is not running.'),
  });
  const simulated = homeWith('simulated', { 'service.log': '' });
  expect((await simulated.logs('cluster')).err).toBe(
    'Error: There is no log "cluster" here: the desktop is simulated, so only its service has logs.\nLogs of this home: service.\n',
  );
  const env = { RDCTL_HOME: temporaryDirectory() };
  expect((await rdctl(['logs'], { env })).err).toMatch(
    /^Error: The log "service" has not been written yet: there is no .*service\.log\.\nStart a service with: rdctl start\n$/,
  );
});

test('the names of logs complete, those that this home can have', async () => {
  const offers = async (driver: string) => {
    const { env } = homeWith(driver, {});
    const { out } = await rdctl(['__completeNoDesc', 'logs', ''], { env });
    return out.split('\n').slice(0, -2);
  };
  expect(await offers('simulated')).toEqual(['service', 'output']);
  expect(await offers('host')).toEqual(['service', 'engine', 'output', 'dockerd', 'moby-containerd', 'containerd']);
  expect(await offers('qemu')).toEqual(expect.arrayContaining(['machine', 'cluster', 'qemu']));
});
