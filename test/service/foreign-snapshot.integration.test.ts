import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';

type Service = Awaited<ReturnType<typeof startService>>;

const REFUSED =
  'failed to restore snapshot "theirs": it was not made in this home, or was changed since; what is in it can run its containers with the rights of the engine';
const ADVICE =
  'Restore it only if you trust who made it: `rdctl snapshot restore NAME --foreign`, or `foreign=true` in the query.';

async function call({ client }: Service, method: string, path: string, body?: object) {
  const request = { method, path, ...(body ? { body: JSON.stringify(body) } : {}) };
  const { status, body: answer } = await client.request(request);
  return { status, text: answer.toString() };
}

const restore = (service: Service, name: string, more = '') =>
  call(service, 'POST', `/v1/snapshot/restore?name=${encodeURIComponent(name)}${more}`);
const listed = async (service: Service): Promise<unknown> =>
  JSON.parse((await call(service, 'GET', '/v1/snapshots')).text);

function snapshotsIn({ here }: Service): string[] {
  return readdirSync(here.snapshots).filter((name) => !name.startsWith('.'));
}

/** A service of a home of its own that is off, with a snapshot. */
async function withSnapshot(name: string): Promise<{ service: Service; directory: string }> {
  const service = await startService({ power: 'stopped' });
  await service.converged();
  expect((await call(service, 'POST', '/v1/snapshots', { name })).status).toBe(200);
  const [id = ''] = snapshotsIn(service);
  return { service, directory: join(service.here.snapshots, id) };
}

/** A home with a snapshot of its own, and one that was copied from another home. */
async function withForeign() {
  const { directory } = await withSnapshot('theirs');
  const { service, directory: own } = await withSnapshot('ours');
  const foreign = join(service.here.snapshots, '11111111-2222-4333-8444-555555555555');
  cpSync(directory, foreign, { recursive: true });
  return { service, own, foreign };
}

test('a snapshot from another home is listed as foreign and restored only on request, and then stays foreign', async () => {
  const { service } = await withForeign();
  const [ours, theirs] = [
    { created: expect.any(String), name: 'ours', description: '' },
    { created: expect.any(String), name: 'theirs', description: '', foreign: true },
  ];
  expect(await listed(service)).toEqual([theirs, ours]);
  const { generation } = await service.client.status();
  expect(await restore(service, 'theirs')).toEqual({ status: 400, text: `${REFUSED}\n${ADVICE}` });
  expect(await restore(service, 'theirs', '&foreign=false')).toMatchObject({ status: 400 });
  expect(await restore(service, 'theirs', '&foreign=yes')).toEqual({
    status: 400,
    text: 'Invalid value of foreign "yes": neither true nor false.',
  });
  expect((await service.client.status()).generation).toBe(generation);
  expect(await restore(service, 'theirs', '&foreign=true')).toMatchObject({ status: 200 });
  expect(await listed(service)).toEqual([theirs, ours]);
  expect(await restore(service, 'theirs')).toMatchObject({ status: 400 });
  expect(await restore(service, 'ours')).toMatchObject({ status: 200 });
  expect(await call(service, 'DELETE', '/v1/snapshots?name=theirs')).toMatchObject({ status: 200 });
});

test.each<[string, (directory: string) => void]>([
  ['its name', (directory) => replace(join(directory, 'metadata.json'), '"theirs"', '"theirs" ')],
  ['its mark', (directory) => replace(join(directory, 'rdctl-complete.txt'), 'sha256:', 'sha256: ')],
  ['no MAC', (directory) => rmSync(join(directory, 'rdctl-mac.txt'))],
  ['an empty MAC', (directory) => writeFileSync(join(directory, 'rdctl-mac.txt'), '')],
])('a snapshot of this home is foreign with %s changed', async (_what, change) => {
  const { service, directory } = await withSnapshot('theirs');
  change(directory);
  expect(await restore(service, 'theirs')).toEqual({ status: 400, text: `${REFUSED}\n${ADVICE}` });
});

test('what a foreign snapshot is called leads to it only when no snapshot of this home has the name', async () => {
  const { service, own, foreign } = await withForeign();
  replace(join(foreign, 'metadata.json'), '"theirs"', '"ours"');
  expect(await restore(service, 'ours')).toMatchObject({ status: 200 });
  expect(await call(service, 'DELETE', '/v1/snapshots?name=ours')).toMatchObject({ status: 200 });
  expect([existsSync(own), existsSync(foreign)]).toEqual([false, true]);
  expect(await restore(service, 'ours')).toMatchObject({ status: 400 });
});

test('the key is in no snapshot, for the user alone, and stays with the snapshots in a factory reset', async () => {
  const { service } = await withSnapshot('ours');
  const { here, home } = service;
  const key = join(here.data, 'snapshots.key');
  expect(statSync(key).mode & 0o777).toBe(0o600);
  if (process.getuid?.() === 0) {
    // Another user who can enter all the directories above.
    for (let above = here.data; ![tmpdir(), '/'].includes(above); above = dirname(above)) chmodSync(above, 0o755);
    const asNobody = (program: string, path: string) =>
      execFileSync(program, [path], { uid: 65_534, gid: 65_534, stdio: 'pipe', encoding: 'utf8' });
    expect(asNobody('ls', here.data)).toContain('snapshots.key');
    expect(() => asNobody('cat', key)).toThrow(/Permission denied/);
    chmodSync(here.data, 0o700);
  }
  const { key: secret } = JSON.parse(readFileSync(key, 'utf8'));
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  for (const name of readdirSync(here.snapshots, { recursive: true, encoding: 'utf8' })) {
    const path = join(here.snapshots, name);
    if (statSync(path).isFile()) expect(readFileSync(path, 'utf8')).not.toContain(secret);
  }
  await service.service.stop('the reset follows');
  const env = { RDCTL_HOME: home };
  expect((await rdctl(['reset', '--factory'], { env })).exit).toBe(0);
  expect(existsSync(key)).toBe(true);

  const again = await startService({ home, power: 'stopped' });
  await again.converged();
  expect(await restore(again, 'ours')).toMatchObject({ status: 200 });
  expect(await call(again, 'DELETE', '/v1/snapshots?name=ours')).toMatchObject({ status: 200 });
  await again.service.stop('the reset follows');
  expect((await rdctl(['reset', '--factory'], { env })).exit).toBe(0);
  expect(existsSync(key)).toBe(false);
});

test('a home that was moved takes its key along', async () => {
  const { service } = await withSnapshot('ours');
  await service.service.stop('the home is moved');
  const home = `${service.home}-moved`;
  renameSync(service.home, home);
  const moved = await startService({ home, power: 'stopped' });
  await moved.converged();
  expect(await restore(moved, 'ours')).toMatchObject({ status: 200 });
});

test('the tool names a foreign snapshot, with and without a service, and asks for --foreign', async () => {
  const { service } = await withForeign();
  const env = { RDCTL_HOME: service.home };
  const look = async () => {
    const table = await rdctl(['snapshot', 'list'], { env });
    expect(table.out).toMatch(/^NAME +CREATED +DESCRIPTION +ORIGIN\ntheirs .* another home\nours .* this home\n$/);
    const lines = (await rdctl(['snapshot', 'list', '--json'], { env })).out.trim().split('\n');
    expect(lines.map((line) => Object.keys(JSON.parse(line)))).toEqual([
      ['created', 'name', 'description', 'foreign'],
      ['created', 'name', 'description'],
    ]);
    const refused = await rdctl(['snapshot', 'restore', 'theirs'], { env });
    expect(refused.exit).toBe(1);
    expect(refused.err).toContain(REFUSED);
    // Nothing is announced or asked before.
    expect(refused.err).not.toMatch(/notice:|replaces/);
    expect(refused.err.replaceAll(/\s+/g, ' ')).toContain(ADVICE);
  };
  await look();
  expect(await rdctl(['snapshot', 'restore', 'theirs', '--foreign'], { env })).toMatchObject({ exit: 0 });
  await service.service.stop('the tool works alone');
  await look();
  expect(existsSync(service.here.connectionFile)).toBe(false);
  expect(await rdctl(['snapshot', 'restore', 'theirs', '--foreign'], { env })).toMatchObject({ exit: 0 });
});

function replace(path: string, text: string, by: string): void {
  const before = readFileSync(path, 'utf8');
  expect(before).toContain(text);
  writeFileSync(path, before.replace(text, by));
}
