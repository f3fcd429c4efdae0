import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

async function create(home: string, ...argv: string[]): Promise<string> {
  const { exit, out, err } = await rdctl(['token', 'create', ...argv], { env: { RDCTL_HOME: home } });
  expect(exit, err).toBe(0);
  return out.trim();
}

test('a token from before the first start works, and one that is revoked does not from the next request on', async () => {
  const home = temporaryDirectory();
  const read = await create(home, '--scope', 'read', '--name', 'monitoring');
  const { service, env } = await startService({ home, settings: { kubernetes: { enabled: false } } });
  const url = `http://127.0.0.1:${service.port}`;
  const get = (token: string) => fetch(`${url}/v2/status`, { headers: { Authorization: `Bearer ${token}` } });
  expect((await get(read)).status).toBe(200);
  const other = JSON.parse(
    await create(home, '--scope', 'read', '--name', 'other', '--expires', 'never', '-o', 'json'),
  );
  expect(other).toMatchObject({ kind: 'Token', scope: 'read', url });
  expect(other).not.toHaveProperty('expiresAt');
  expect((await get(other.token)).status).toBe(200);
  const listed = JSON.parse((await rdctl(['token', 'list', '-o', 'json'], { env })).out);
  expect(listed.tokens.map(({ name, usable }: { name: string; usable: boolean }) => [name, usable])).toEqual([
    ['monitoring', true],
    ['other', true],
  ]);
  expect(JSON.stringify(listed)).not.toContain('sha256');

  const ended = new Promise<void>((resolve, reject) => {
    const headers = { Authorization: `Bearer ${read}` };
    const outgoing = request(`${url}/v2/events`, { headers }, (incoming) => {
      incoming.once('data', () => void rdctl(['token', 'revoke', 'monitoring'], { env }).catch(reject));
      incoming.once('end', resolve).once('error', reject).resume();
    });
    outgoing.once('error', reject).end();
  });
  await ended;
  const refused = await get(read);
  expect([refused.status, await refused.text()]).toEqual([401, expect.stringContaining('unknown, or was revoked')]);
  expect((await rdctl(['token', 'revoke', 'monitoring'], { env })).exit).toBe(1);
  expect((await get(other.token)).status).toBe(200);
});

test('rdctl itself works with a token as the password, and the history names the token', async () => {
  const { service, env, home, here } = await startService({ settings: { kubernetes: { enabled: false } } });
  const cwd = temporaryDirectory();
  const token = (scope: string, name: string) => create(home, '--scope', scope, '--name', name);
  const file = join(cwd, 'secret');
  const use = async (secret: string, ...argv: string[]) => {
    writeFileSync(file, `${secret}\n`);
    const flags = ['--host', '127.0.0.1', '--port', String(service.port), '--user', 'token', '--password-file', file];
    return rdctl([...argv, ...flags], { env, cwd });
  };
  const plan = await token('plan', 'reviewer');
  expect((await use(plan, 'status')).exit).toBe(0);
  const refused = await use(plan, 'set', '--images.namespace', 'web');
  expect(refused.exit).toBe(1);
  expect(refused.err).toContain('PUT /v1/settings requires the scope write; the token "reviewer" has plan');
  const write = await token('write', 'ci-bot');
  expect((await use(write, 'set', '--images.namespace', 'web')).exit).toBe(0);
  writeFileSync(
    join(cwd, 'team.yaml'),
    'apiVersion: rdctl/v1\nkind: Profile\nstate: started\nsettings: { version: 19, images: { namespace: team } }\n',
  );
  const applied = await use(write, 'apply', '-f', 'team.yaml');
  expect(applied.exit, applied.err).toBe(0);
  expect((await use('rdctl_ci-bot', 'status')).err).toContain('this is only a part of a token');
  const { entries } = JSON.parse((await rdctl(['history', '-o', 'json'], { env })).out);
  expect(entries.map(({ by: { how, token: name } }: { by: Record<string, string> }) => [how, name])).toEqual([
    ['set', 'ci-bot'],
    ['apply', 'ci-bot'],
  ]);
  expect((await rdctl(['history'], { env })).out).toMatch(/ set, token ci-bot +/);
  expect(here.tokens).toBe(join(home, 'state', 'tokens'));
});
