import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorWithPositions } from '../../cli/arguments/profile-files.ts';
import { RdError } from '../../src/errors.ts';
import { rdctl } from '../helpers/cli.ts';
import { freePort } from '../helpers/free-port.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HEAD = 'apiVersion: rdctl/v1\nkind: Profile\nsettings:\n  version: 19\n';

async function stage(text: string, options: Parameters<typeof startService>[0] = {}) {
  const running = await startService(options);
  await running.converged();
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'team.yaml'), text);
  return (...argv: string[]) => rdctl([...argv, '-f', 'team.yaml'], { env: running.env, cwd });
}

describe('errors that only the service can find are shown at their position', () => {
  test.each(['plan', 'diff', 'apply'])('%s: a cluster version that is not offered', async (command) => {
    const run = await stage(`${HEAD}  kubernetes:\n    version: "1.2.3"\n`);
    const { exit, err } = await run(command);
    expect(exit).toBe(3);
    const line =
      'team.yaml:6:14: Kubernetes version "1.2.3" not found (/settings/kubernetes/version); expected one of ';
    expect(err.split('\n').filter((each) => each.startsWith(line))).toHaveLength(1);
  });

  test('in a document of an older version, at its own path', async () => {
    const run = await stage('version: 4\nkubernetes:\n  version: "1.2.3"\n  memoryInGB: 4\n');
    expect((await run('plan')).err).toContain(
      'team.yaml:3:12: Kubernetes version "1.2.3" not found (/kubernetes/version)',
    );
  });

  test('a lock: after the change in the plan, before the message in the error of apply', async () => {
    const policy = join(temporaryDirectory(), 'locked.json');
    writeFileSync(policy, JSON.stringify({ version: 19, images: { showAll: false } }));
    const run = await stage(`${HEAD}  images:\n    namespace: team\n    showAll: true\n`, {
      policies: { locked: policy },
    });
    const plan = await run('plan');
    expect(plan.out).toContain('  ! images.showAll: false → true (team.yaml:7:5)\n      lock: ');
    expect(plan.out).toContain('  ~ images.namespace: default → team\n');
    const apply = await run('apply');
    expect(apply.exit).toBe(3);
    expect(apply.err).toContain('  ! images.showAll: false → true (team.yaml:7:5)\n');
    expect(apply.err).toContain(
      `\nteam.yaml:7:5: "images.showAll" is locked by ${policy}; ask your administrator. (/settings/images/showAll)\n`,
    );
  });

  test('a port forward that cannot be created', async () => {
    const hostPort = await freePort();
    const forward = `{ namespace: default, service: web, k8sPort: 80, hostPort: ${hostPort} }`;
    const other = { namespace: 'default', service: 'kubernetes', k8sPort: 443, hostPort };
    const { client, env, converged } = await startService();
    await converged();
    await client.addPortForward(other);
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'team.yaml'), `${HEAD}portForwards: [${forward}]\n`);
    expect((await rdctl(['plan', '-f', 'team.yaml'], { env, cwd })).out).toContain('(team.yaml:5:16)\n');
    const apply = await rdctl(['apply', '-f', 'team.yaml'], { env, cwd });
    expect(apply.err).toContain(
      `\nteam.yaml:5:16: portForwards[default/web:80]: 127.0.0.1:${hostPort} is forwarded to `,
    );
  });
});

describe('refusals in plain text', () => {
  const locate = (names: readonly string[]) =>
    names.join('.') === 'kubernetes.port'
      ? { file: 'p.yaml', line: 2, column: 9, pointer: '/kubernetes/port' }
      : undefined;

  test('lines that name a setting get its position, others stay unchanged', () => {
    const error = new RdError(
      'ERR_SETTINGS_INVALID',
      'errors in attempt to update settings:\nfield "kubernetes.port" is locked\nsomething else',
    );
    const placed = errorWithPositions(error, locate);
    expect(placed).toMatchObject({
      code: 'ERR_SETTINGS_INVALID',
      message: 'errors in attempt to update settings:',
      details: ['p.yaml:2:9: field "kubernetes.port" is locked (/kubernetes/port)', 'something else'],
    });
  });

  test('nothing changes without a document or for other errors', () => {
    const error = new RdError('ERR_SETTINGS_INVALID', 'heading\nfield "kubernetes.port" is locked');
    expect(errorWithPositions(error, undefined)).toBe(error);
    const other = new RdError('ERR_DEADLINE', 'too late\nfor kubernetes.port');
    expect(errorWithPositions(other, locate)).toBe(other);
    const bug = new TypeError('kubernetes.port');
    expect(errorWithPositions(bug, locate)).toBe(bug);
  });
});

describe('many errors', () => {
  const stdin = `version: 19\n${Array.from({ length: 16_000 }, (_, index) => `name${index}: 1\n`).join('')}`;

  test.each(['validate', 'plan', 'apply'])('%s shows fifty and the number of the rest', async (command) => {
    const { exit, out, err } = await rdctl([command, '-f', '-'], {
      stdin,
      env: { RDCTL_HOME: temporaryDirectory() },
    });
    expect(exit).toBe(3);
    const lines = `${out}${err}`.split('\n');
    expect(lines.filter((line) => line.startsWith('<stdin>:'))).toHaveLength(50);
    expect(lines).toContain('… and 15950 more');
    expect(err).toContain('16000 errors');
  });

  test('-o json has them all', async () => {
    const { out } = await rdctl(['validate', '-f', '-', '-o', 'json'], { stdin });
    expect(JSON.parse(out).findings).toHaveLength(16_000);
  });
});

describe('validate', () => {
  test('reports each document with its kind and an older version', async () => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'a.yaml'), HEAD);
    writeFileSync(join(cwd, 'b.json'), '{"version":10}');
    const argv = ['validate', '-f', 'a.yaml', '-f', 'b.json'];
    const { exit, out, err } = await rdctl(argv, { cwd });
    expect({ exit, out }).toEqual({ exit: 0, out: '' });
    expect(err).toBe('a.yaml: valid profile\nb.json: valid settings, read as version 19 (written for 10)\n');
    const json = await rdctl([...argv, '-o', 'json'], { cwd });
    expect(JSON.parse(json.out)).toEqual({
      kind: 'Validation',
      formatVersion: 1,
      valid: true,
      files: ['a.yaml', 'b.json'],
      documents: [
        { file: 'a.yaml', form: 'profile', version: 19 },
        { file: 'b.json', form: 'settings', version: 10 },
      ],
      findings: [],
      warnings: [],
    });
  });

  test('warns about what depends on other settings', async () => {
    const stdin = 'version: 19\nexperimental: { virtualMachine: { mount: { 9p: { cacheMode: none } } } }\n';
    const { exit, err } = await rdctl(['validate', '-f', '-'], { stdin });
    expect(exit).toBe(0);
    expect(err).toMatch(/^warning: <stdin>:2:61: .*cacheMode can only be changed when .*\n<stdin>: valid settings\n$/);
  });
});
