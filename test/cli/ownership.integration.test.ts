import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createToken } from '../../src/state/tokens.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const TEAM = `apiVersion: rdctl/v1
kind: Profile
metadata: { name: team }
settings:
  version: 19
  containerEngine: { name: containerd }
  images: { namespace: team }
`;
const MINE = TEAM.replace('name: team', 'name: mine').replace('containerd', 'moby').replace(': team }', ': mine }');

test('diff, explain and plan say what set each field, when and from where', async () => {
  const { client, env, here, service, converged } = await startService({
    settings: { kubernetes: { enabled: false } },
  });
  await converged();
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'team.yaml'), TEAM);
  writeFileSync(join(cwd, 'mine.yaml'), MINE);
  const run = (...argv: string[]) => rdctl(argv, { env, cwd });
  const json = async (...argv: string[]) => JSON.parse((await run(...argv, '-o', 'json')).out);

  // Nothing has been set yet.
  expect((await run('diff', '-f', 'team.yaml')).out).not.toContain('set by');
  expect(await json('explain', 'images.namespace')).not.toHaveProperty('managedBy');
  await run('apply', '-f', 'team.yaml');
  const file = join(cwd, 'team.yaml');
  const managedBy = {
    how: 'apply',
    profile: 'team',
    files: [{ path: file, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    source: { file, line: 7 },
    generation: expect.any(Number),
    at: expect.stringMatching(/^20/),
  };
  expect(await json('explain', 'images.namespace')).toMatchObject({ managedBy });
  const diff = await json('diff', '-f', 'mine.yaml');
  expect(diff.differences).toMatchObject([
    { path: 'containerEngine.name', managedBy: { source: { line: 6 } } },
    { path: 'images.namespace', live: 'team', profile: 'mine', managedBy },
  ]);
  expect((await run('diff', '-f', 'mine.yaml')).out).toMatch(
    / {2}images\.namespace: team → mine\n {6}set by team\.yaml:7 just now, generation \d+\n/,
  );

  // A program with a token, and entries of a map.
  const token = await createToken(here.tokens, { name: 'ci-bot', scope: 'write', createdAt: new Date().toISOString() });
  const body = { version: 19, images: { namespace: 'ci' }, diagnostics: { mutedChecks: { A: true } } };
  const answer = await fetch(`http://127.0.0.1:${service.port}/v1/settings`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(202);
  const byToken = /"images\.namespace" was set by token ci-bot just now \(generation \d+\); this profile takes it over/;
  expect((await run('plan', '-f', 'team.yaml')).out).toMatch(byToken);
  expect((await run('explain', 'diagnostics.mutedChecks')).out).toMatch(/^Set by +A: token ci-bot, /m);
  expect(await json('explain', 'diagnostics.mutedChecks')).toMatchObject({
    managedEntries: { A: { token: 'ci-bot' } },
  });
  // An apply warns as well.
  expect((await run('apply', '-f', 'team.yaml')).err).toMatch(byToken);
  expect((await run('plan', '-f', 'team.yaml')).out).not.toContain('takes');

  // What a person did since the last apply of this profile.
  await run('set', '--images.namespace', 'hand');
  expect((await run('plan', '-f', 'team.yaml')).out).toMatch(/"images\.namespace" was set by `rdctl set` just now/);
  expect((await run('plan', '-f', 'mine.yaml')).out).not.toContain('rdctl set');
  expect((await client.settings()).settings).toMatchObject({ images: { namespace: 'hand' } });

  // Without the service, and for the service of another home, of which this one knows nothing.
  await service.stop('test');
  expect((await run('diff', '-f', 'team.yaml')).out).toMatch(/set by `rdctl set` just now/);
  const other = await startService();
  const { exit, out } = await rdctl(['diff', '-f', 'mine.yaml', '--config-path', other.here.connectionFile], {
    env,
    cwd,
  });
  expect([exit, out.includes('set by')]).toEqual([2, false]);
});
