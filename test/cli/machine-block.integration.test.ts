import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { foreignApp } from '../helpers/foreign-app.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PROFILE = (block: string) => `apiVersion: rdctl/v1
kind: Profile
settings: { version: 19, kubernetes: { enabled: false } }
state: started
machine:
${block.replaceAll(/^/gm, '  ')}
`;
const BLOCK = 'mounts: { "~/work": writable, /data: read-only }\nhostPorts: [5432, 3001-3010]\npauseAfterMinutes: 30';

/** A service with a profile's block applied. */
async function applied(home = temporaryDirectory()) {
  const running = await startService({ home });
  await running.converged();
  const cwd = temporaryDirectory();
  const run = (argv: string[], block?: string) => {
    if (block !== undefined) writeFileSync(join(cwd, 'team.yaml'), PROFILE(block));
    return rdctl(argv, { env: running.env, cwd });
  };
  return { ...running, run };
}

test('is planned, applied and then no change, also after a restart of the service', async () => {
  const { run, service, home } = await applied();
  const plan = await run(['plan', '-f', 'team.yaml'], BLOCK);
  expect(plan.out).toMatch(/\+ machine\.mounts\[\/data\]: read-only/);
  expect(plan.out).toMatch(/~ machine\.hostPorts: \[\] → /);
  expect(plan.out).toContain('1 restart');
  expect((await run(['apply', '-f', 'team.yaml'])).exit).toBe(0);
  expect((await run(['apply', '-f', 'team.yaml'])).out).toContain('Nothing to change.');

  await service.stop('test');
  const again = await applied(home);
  expect((await again.run(['diff', '-f', 'team.yaml'], BLOCK)).exit).toBe(0);
  const explained = await again.run(['explain', 'machine.hostPorts', '-o', 'json']);
  expect(JSON.parse(explained.out)).toMatchObject({ value: ['3001-3010', 5432], from: 'stored', lockable: false });
});

test('a live part restarts nothing, and nothing else changes', async () => {
  const { run, client } = await applied();
  await run(['apply', '-f', 'team.yaml'], BLOCK);
  const before = (await client.status()).counters;
  const { exit, err } = await run(['apply', '-f', 'team.yaml'], 'hostPorts: [80]\nmounts: { /data: read-only }');
  expect(exit).toBe(0);
  expect(err).toContain('machine.hostPorts');
  expect((await client.status()).counters.restarts).toBe(before.restarts);
  const { out } = await run(['explain', 'machine']);
  expect(out).toMatch(/machine\.mounts +\{.*"~\/work".*\} +stored/);
  expect(out).toMatch(/machine\.pauseAfterMinutes +30 +stored/);
});

test('apply --previous brings the block back', async () => {
  const { run } = await applied();
  await run(['apply', '-f', 'team.yaml'], BLOCK);
  await run(['apply', '-f', 'team.yaml'], 'mounts: { /data: null, /other: writable }\npauseAfterMinutes: 0');
  expect((await run(['apply', '--previous'])).exit).toBe(0);
  expect((await run(['diff', '-f', 'team.yaml'], `${BLOCK}\n`)).exit).toBe(0);
  expect((await run(['explain', 'machine.mounts'])).out).not.toContain('/other');
});

test('mistakes are reported at their line, and nothing is sent', async () => {
  const { run, client } = await applied();
  const { generation } = await client.status();
  const { exit, err } = await run(
    ['apply', '-f', 'team.yaml'],
    'mounts: { work: writable }\nhostPort: [1]\nhostPorts: [0]',
  );
  expect(exit).toBe(3);
  expect(err).toMatch(/^team\.yaml:6:13: "work" is not the path of a directory/m);
  expect(err).toMatch(/^team\.yaml:7:3: "hostPort" is not a setting of the machine .*did you mean hostPorts\?/m);
  expect(err).toMatch(/^team\.yaml:8:15: 0 is not a port/m);
  expect((await client.status()).generation).toBe(generation);
});

test('a saved plan holds the block, and is stale once it has changed', async () => {
  const { run } = await applied();
  await run(['plan', '-f', 'team.yaml', '--out-file', 'plan.json'], BLOCK);
  expect((await run(['apply', 'plan.json'])).exit).toBe(0);
  expect((await run(['diff', '-f', 'team.yaml'], BLOCK)).exit).toBe(0);
  await run(['plan', '-f', 'team.yaml', '--out-file', 'plan.json'], 'hostPorts: [1]');
  await run(['apply', '-f', 'team.yaml'], 'hostPorts: [2]');
  expect((await run(['apply', 'plan.json'])).exit).toBe(6);
});

test('another application has no such settings', async () => {
  const { env, writes } = await foreignApp({ version: 16 });
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'team.yaml'), PROFILE(BLOCK));
  const { exit, out } = await rdctl(['plan', '-f', 'team.yaml'], { env, cwd });
  expect(exit).toBe(3);
  expect(out).toContain('The machine block is for rdctl');
  expect(writes()).toEqual([]);
});

test('without a service, the plan compares with the stored block', async () => {
  const { run, service } = await applied();
  await run(['apply', '-f', 'team.yaml'], BLOCK);
  await service.stop('test');
  const { out } = await run(['plan', '-f', 'team.yaml'], 'hostPorts: [1]\nmounts: { /data: read-only }');
  expect(out).toContain('machine.hostPorts');
  expect(out).not.toContain('machine.mounts');
});

test('no settings document shows the block', async () => {
  const { run } = await applied();
  await run(['apply', '-f', 'team.yaml'], BLOCK);
  for (const argv of [
    ['list-settings'],
    ['api', '/v1/settings'],
    ['create-profile', '--output', 'plist', '--input', 'team.yaml'],
  ]) {
    const { out } = await run(argv);
    expect(out, argv.join(' ')).not.toBe('');
    expect(out, argv.join(' ')).not.toMatch(/hostPorts|5432|pauseAfter/);
  }
});
