import { chmodSync, lchownSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { withServiceExit } from '../../cli/commands/apply/failure.ts';
import { createClient } from '../../src/client/client.ts';
import { RdError } from '../../src/errors.ts';
import { lockApply } from '../../src/state/home-lock.ts';
import { rdctl } from '../helpers/cli.ts';
import { foreignApp } from '../helpers/foreign-app.ts';
import { recordingProxy } from '../helpers/recording-proxy.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A service, and a tool that reaches it through a counting proxy. */
async function stage(options: Parameters<typeof startService>[0] = {}) {
  const running = await startService(options);
  await running.converged();
  const proxy = await recordingProxy(running.service.connection);
  const cwd = temporaryDirectory();
  return {
    ...running,
    proxy,
    cwd,
    file(name: string, text: string) {
      writeFileSync(join(cwd, name), text);
    },
    rdctl: (argv: string[], rest: Parameters<typeof rdctl>[1] = {}) => rdctl(argv, { env: proxy.env, cwd, ...rest }),
  };
}

const isErrorDocument = new Ajv2020().compile(JSON.parse(readFileSync('schemas/error.json', 'utf8')));
const CONTAINERD = JSON.stringify({ version: 19, containerEngine: { name: 'containerd' } });
const cluster = (version: string) => JSON.stringify({ version: 19, kubernetes: { enabled: true, version } });

describe('apply -f', () => {
  test('sends no more requests than it needs', async () => {
    const { rdctl, proxy, file } = await stage();
    file('p.json', CONTAINERD);
    // The proxy's home has no lock that would show whether the service is staying.
    const requests = () => proxy.requests.splice(0).filter((line) => line !== 'GET /v1/backend_state');
    await rdctl(['apply', '-f', 'p.json']);
    const plan = 'POST /v2/plan?waitMs=60000&live=true';
    expect(requests()).toEqual(['GET /v2/status', plan, 'POST /v2/apply', 'GET /v2/events?kinds=status']);
    await rdctl(['apply', '-f', 'p.json']);
    expect(requests()).toEqual(['GET /v2/status', plan]);
  });

  test('sends one write, waits, and reports what happened', async () => {
    const { rdctl, proxy, client, file } = await stage();
    file('p.json', CONTAINERD);
    const { exit, out, err } = await rdctl(['apply', '-f', 'p.json']);
    expect(exit).toBe(0);
    expect(proxy.writes()).toEqual(['POST /v2/apply']);
    expect(await client.status()).toMatchObject({ converged: true, engine: { name: 'containerd', state: 'running' } });
    expect(err).toMatch(/Driver: simulated \(SIMULATED/);
    expect(err).toContain('± containerEngine.name: moby → containerd');
    // A phase is shown once: when it ends, or at the end of the apply.
    expect(`${err}${out}`).toMatch(/engine stop.*engine start.*Converged in /s);
  });

  test('writes nothing the second time', async () => {
    const { rdctl, proxy, file } = await stage();
    file('p.json', CONTAINERD);
    await rdctl(['apply', '-f', 'p.json']);
    const before = proxy.writes().length;
    const { exit, out } = await rdctl(['apply', '-f', 'p.json']);
    expect(exit).toBe(0);
    expect(out).toMatch(/^Nothing to change\.\n/);
    expect(proxy.writes()).toHaveLength(before);
  });

  test('applies the output of list-settings without a write', async () => {
    const { rdctl, proxy } = await stage();
    const { out: stdin } = await rdctl(['list-settings']);
    const { exit, out } = await rdctl(['apply', '-f', '-'], { stdin });
    expect(exit).toBe(0);
    expect(out).toContain('Nothing to change.');
    expect(proxy.writes()).toEqual([]);
  });

  test('prints a document with -o json', async () => {
    const { rdctl, file } = await stage();
    file('p.json', CONTAINERD);
    const applied = JSON.parse((await rdctl(['apply', '-f', 'p.json', '-o', 'json'])).out);
    expect(applied).toMatchObject({
      kind: 'ApplyReport',
      formatVersion: 1,
      outcome: 'applied',
      target: { driver: 'simulated', simulated: true },
      changes: [{ path: 'containerEngine.name', before: 'moby', after: 'containerd' }],
      writes: 1,
      converged: true,
      phases: expect.arrayContaining([
        expect.objectContaining({ name: 'engine stop' }),
        expect.objectContaining({ name: 'engine start' }),
      ]),
    });
    expect(JSON.parse((await rdctl(['apply', '-f', 'p.json', '-o', 'json'])).out)).toMatchObject({
      outcome: 'unchanged',
      writes: 0,
    });
  });

  test('sets the power state: stopped, unmanaged, started', async () => {
    const { rdctl, proxy, client, file } = await stage();
    const profile = (state: string) =>
      `apiVersion: rdctl/v1\nkind: Profile\nsettings: { version: 19 }\nstate: ${state}\n`;
    file('p.yaml', profile('stopped'));
    expect((await rdctl(['apply', '-f', 'p.yaml'])).exit).toBe(0);
    expect((await client.backendState()).vmState).toBe('STOPPED');
    file('p.yaml', profile('unmanaged'));
    expect((await rdctl(['apply', '-f', 'p.yaml'])).out).toContain('Nothing to change.');
    file('p.yaml', profile('started'));
    expect((await rdctl(['apply', '-f', 'p.yaml'])).exit).toBe(0);
    expect((await client.status()).engine.state).toBe('running');
    expect(proxy.writes()).toEqual(['POST /v2/apply', 'POST /v2/apply']);
  });
});

describe('data loss', () => {
  test('is refused without consent, which a terminal prompts for and --allow-reset or --allow ITEM gives in advance', async () => {
    const { rdctl, proxy, file } = await stage();
    file('new.json', cluster('1.33.4'));
    file('old.json', cluster('1.32.8'));
    expect((await rdctl(['apply', '-f', 'new.json'])).exit).toBe(0);
    const writes = proxy.writes().length;
    const refused = await rdctl(['apply', '-f', 'old.json']);
    expect(refused.exit).toBe(5);
    expect(refused.err).toContain('--allow-reset');
    const declined = await rdctl(['apply', '-f', 'old.json'], { interactive: true, ask: async () => 'no' });
    expect(declined.exit).toBe(5);
    expect(declined.err).toMatch(/\nNothing was changed\.\n$/);
    expect(declined.err).not.toContain('nobody');
    const left = await rdctl(['apply', '-f', 'old.json'], { interactive: true, ask: async () => undefined });
    expect(left).toMatchObject({ exit: 130, err: expect.stringMatching(/\nNothing was changed\.\n$/) });
    expect(proxy.writes()).toHaveLength(writes);
    expect((await rdctl(['apply', '-f', 'old.json'], { interactive: true, ask: async () => 'yes' })).exit).toBe(0);
    expect((await rdctl(['apply', '-f', 'new.json'])).exit).toBe(0);
    expect((await rdctl(['apply', '-f', 'old.json', '--allow', 'machine-reset'])).exit).toBe(5);
    expect((await rdctl(['apply', '-f', 'old.json', '--allow', 'kubernetes-reset'])).exit).toBe(0);
    expect((await rdctl(['apply', '-f', 'new.json'])).exit).toBe(0);
    expect((await rdctl(['apply', '-f', 'old.json', '--allow-reset'])).exit).toBe(0);
  });
});

describe('locks', () => {
  const locked = JSON.stringify({ version: 19, images: { showAll: false } });
  const wanted = JSON.stringify({ version: 19, images: { showAll: true, namespace: 'team' } });

  test('are reported with the field and the file, and --skip-locked applies the rest', async () => {
    const policy = join(temporaryDirectory(), 'locked.json');
    writeFileSync(policy, locked);
    const { rdctl, proxy, client, file } = await stage({ policies: { locked: policy } });
    file('p.json', wanted);
    const planned = await rdctl(['plan', '-f', 'p.json', '--detailed-exitcode']);
    expect(planned).toMatchObject({ exit: 3, out: expect.stringContaining('Cannot be changed:\n  ! images.showAll') });
    const compared = await rdctl(['diff', '-f', 'p.json']);
    expect(compared).toMatchObject({
      exit: 2,
      out: expect.stringMatching(/images\.showAll: .*\n {6}cannot be changed: /),
    });
    const refused = await rdctl(['apply', '-f', 'p.json']);
    expect(refused.exit).toBe(3);
    expect(refused.err).toContain('images.showAll');
    expect(refused.err).toContain(policy);
    expect(proxy.writes()).toEqual([]);
    const { exit, out, err } = await rdctl(['apply', '-f', 'p.json', '--skip-locked']);
    expect(exit).toBe(0);
    expect(err).toMatch(/Skipped because of locks:\n {2}! images\.showAll/);
    expect(out).toContain('1 locked change skipped.');
    expect((await client.settings()).settings).toMatchObject({ images: { showAll: false, namespace: 'team' } });
  });
});

describe('a saved plan', () => {
  test('is applied once and is then stale', async () => {
    const { rdctl, proxy, client, file } = await stage();
    file('p.json', CONTAINERD);
    expect((await rdctl(['plan', '-f', 'p.json', '--out-file', 'plan.json'])).exit).toBe(0);
    expect(proxy.writes()).toEqual([]);
    expect((await rdctl(['apply', 'plan.json'])).exit).toBe(0);
    expect((await client.status()).engine.name).toBe('containerd');
    const again = await rdctl(['apply', 'plan.json']);
    expect(again.exit).toBe(6);
    expect(again.err).toContain('saved plan is stale');
    expect(proxy.writes()).toHaveLength(1);
  });

  test('is refused by another target', async () => {
    const one = await stage();
    one.file('p.json', CONTAINERD);
    await one.rdctl(['plan', '-f', 'p.json', '--out-file', 'plan.json']);
    const two = await stage();
    const { exit } = await two.rdctl(['apply', join(one.cwd, 'plan.json')]);
    expect(exit).toBe(3);
    expect(two.proxy.writes()).toEqual([]);
  });

  test.runIf(process.platform !== 'win32')(
    'is refused where others can write it, with the command that fixes that',
    async () => {
      const { rdctl, proxy, file, cwd } = await stage();
      file('p.json', CONTAINERD);
      const plan = join(cwd, 'plan.json');
      expect(await rdctl(['plan', '-f', 'p.json', '--out-file', 'plan.json'])).toMatchObject({ exit: 0, err: '' });
      expect(statSync(plan).mode & 0o777).toBe(0o600);
      for (const [exposed, mode, usual] of [
        [plan, 0o666, 0o600],
        [cwd, 0o777, 0o700],
      ] as const) {
        chmodSync(exposed, mode);
        const { exit, err } = await rdctl(['apply', 'plan.json']);
        expect(exit).toBe(3);
        expect(err).toContain(`${exposed} can be written by other users`);
        expect(err).toContain(
          `Run \`chmod go-w ${exposed}\`. Otherwise: save it in a directory that only you can write to`,
        );
        // A new plan is a new file; the directory stays as it is, which is reported at once.
        const again = await rdctl(['plan', '-f', 'p.json', '--out-file', 'plan.json']);
        expect(again.err.includes('so `rdctl apply` refuses the plan there')).toBe(exposed === cwd);
        chmodSync(exposed, usual);
      }
      expect(proxy.writes()).toEqual([]);
      expect((await rdctl(['apply', 'plan.json'])).exit).toBe(0);
    },
  );

  test.runIf(process.getuid?.() === 0)('is not written through a link of another user', async () => {
    const { rdctl, file, cwd } = await stage();
    file('p.json', CONTAINERD);
    file('precious', 'mine');
    const precious = join(cwd, 'precious');
    const link = join(cwd, 'plan.json');
    symlinkSync(precious, link);
    lchownSync(link, 65534, 65534);
    const plan = () => rdctl(['plan', '-f', 'p.json', '--out-file', 'plan.json']);
    const { exit, err } = await plan();
    expect(err).toContain(`could not write ${link}: the link ${link} belongs to another user (owner nobody`);
    expect(exit).toBe(3);
    expect(readFileSync(precious, 'utf8')).toBe('mine');
    lchownSync(link, 0, 0);
    expect((await plan()).exit).toBe(0);
    expect(readFileSync(precious, 'utf8')).not.toBe('mine');
  });

  test('is stale when the power state changes during the prompt', async () => {
    const { rdctl, client, proxy, file } = await stage();
    file('old.json', cluster('1.30.2'));
    expect((await rdctl(['plan', '-f', 'old.json', '--out-file', 'plan.json'])).exit).toBe(0);
    const before = await client.settings();
    const ask = async () => {
      await client.setBackendState('STOPPED');
      return 'yes';
    };
    const { exit, err } = await rdctl(['apply', 'plan.json'], { interactive: true, ask });
    expect(exit).toBe(6);
    expect(err).toContain('the power state changed');
    expect(proxy.writes()).toEqual(['POST /v2/apply']);
    expect(await client.settings()).toEqual(before);
  });

  test.each([
    ['a profile', CONTAINERD, 3, 'rdctl apply -f plan.json'],
    ['nothing', undefined, 1, 'plan.json could not be read: no such file or directory'],
  ])('%s in its place: exit', async (_what, text, code, said) => {
    const { rdctl, proxy, file } = await stage();
    if (text !== undefined) file('plan.json', text);
    const { exit, err } = await rdctl(['apply', 'plan.json']);
    expect(exit).toBe(code);
    expect(err).toContain(said);
    expect(proxy.requests).toEqual([]);
  });
});

describe('rolling back', () => {
  test('--previous restores settings, map entries and power', async () => {
    const { rdctl, client, file } = await stage();
    const { settings: before } = await client.settings();
    file(
      'p.yaml',
      `apiVersion: rdctl/v1
kind: Profile
settings:
  version: 19
  containerEngine: { name: containerd }
  diagnostics: { mutedChecks: { ONE: true } }
state: stopped
`,
    );
    expect((await rdctl(['apply', '-f', 'p.yaml'])).exit).toBe(0);
    expect((await rdctl(['apply', '--previous'])).exit).toBe(0);
    expect((await client.settings()).settings).toEqual(before);
    expect((await client.status()).power).toBe('started');
  });

  test('there is nothing to restore before the first apply', async () => {
    const { rdctl } = await stage();
    const { exit, err } = await rdctl(['apply', '--previous']);
    expect(exit).toBe(1);
    expect(err).toContain('There is nothing to undo');
  });
});

describe('a failure with -o json', () => {
  test.each<[string, string[], string, number]>([
    ['a usage', ['apply', '-o', 'json'], 'ERR_USAGE', 1],
    ['an unknown flag', ['plan', '--nope', '-o=json'], 'ERR_USAGE', 1],
    ['a missing file', ['diff', '-f', 'none.yaml', '--output=json'], 'ERR_IO', 1],
    ['a profile with mistakes', ['apply', '-f', 'bad.yaml', '-o', 'json'], 'ERR_PROFILE_INVALID', 3],
    ['no service', ['status', '-o', 'json'], 'ERR_NOT_RUNNING', 1],
    ['a refusal', ['apply', '-f', 'bad.yaml', '--driver', 'nope', '-ojson'], 'ERR_USAGE', 1],
  ])('%s is one document on stdout and a message on stderr', async (_what, argv, code, exit) => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'bad.yaml'), 'version: 19\nnope: 1\n');
    const outcome = await rdctl(argv, { cwd, env: { RDCTL_HOME: temporaryDirectory() } });
    expect(outcome.exit).toBe(exit);
    const document = JSON.parse(outcome.out);
    expect(document).toMatchObject({ code, message: expect.any(String) });
    expect(isErrorDocument(document)).toBe(true);
    expect(outcome.err.startsWith(`Error: ${document.message}\n`)).toBe(true);
  });
});

describe('failures', () => {
  test('the service ends during an apply: reports what is known and its log; the next apply completes it', async () => {
    const { here, service } = await stage();
    const ended = new RdError('ERR_NOT_RUNNING', 'connection refused');
    const status = await createClient(service.connection).status();
    const found = { client: createClient(service.connection), status: { ...status, pid: 2 ** 30 } };
    await expect(withServiceExit(ended, found, here, true)).rejects.toMatchObject({
      message: `The service (pid ${2 ** 30}) exited while applying; the settings are saved.`,
      details: [`Its log: ${join(here.logs, 'service.log')}`],
      advice: expect.stringContaining('Run the same apply again'),
    });
    await expect(withServiceExit(ended, found, here, false)).rejects.toThrow(
      'it is not known whether the settings were saved',
    );
    const other = new RdError('ERR_PLAN_STALE', 'moved');
    await expect(withServiceExit(other, found, here, true)).rejects.toBe(other);
  });

  test('a backend that cannot converge: reports the reason, the log and the command that rolls back', async () => {
    const { rdctl, file } = await stage({ env: { RDCTL_SIMULATED_FAULTS: 'containerd.start:terminal' } });
    file('p.json', CONTAINERD);
    const { exit, err } = await rdctl(['apply', '-f', 'p.json', '--on-failure', 'keep']);
    expect(exit).toBe(1);
    expect(err).toMatch(
      /^Error: The backend did not reach the desired state \(EngineReady: StepFailed\): engine start failed/m,
    );
    expect(err).toMatch(/run: rdctl rollback\n$/);
    const back = await rdctl(['rollback']);
    expect(back.exit).toBe(0);
    expect(back.out).toMatch(/Converged in .*\nEndpoint: simulated:moby\n$/);
  });

  test('output never includes text from the wire', async () => {
    const { rdctl, file } = await stage();
    file('p.json', CONTAINERD);
    const { out, err } = await rdctl(['apply', '-f', 'p.json']);
    expect(`${out}${err}`).not.toMatch(
      /Rancher|reconfiguring|received backend state|no changes necessary|restart required/,
    );
  });

  test('a backend that gave up is retried and can recover', async () => {
    const { rdctl, proxy, client, file, service, home } = await stage({
      env: { RDCTL_SIMULATED_FAULTS: 'containerd.start:terminal' },
    });
    file('p.json', CONTAINERD);
    expect((await rdctl(['apply', '-f', 'p.json', '--on-failure', 'keep'])).exit).toBe(1);
    const before = (await client.status()).generation;
    // What failed before is not undone by a retry.
    const second = await rdctl(['apply', '-f', 'p.json']);
    expect(second.exit).toBe(1);
    expect(second.err).toContain('the backend failed; retrying');
    expect(second.err).toContain('the engine had failed before');
    expect(proxy.writes()).toEqual(['POST /v2/apply', 'POST /v2/apply']);
    expect((await client.status()).generation).toBe(before + 1);
    await service.stop('the fault is repaired');
    const repaired = await startService({ home });
    await repaired.converged();
    expect((await repaired.client.status()).engine).toMatchObject({ name: 'containerd', state: 'running' });
  });

  test('a timeout: exit 4', async () => {
    const { rdctl, file } = await stage({ env: { RDCTL_SIMULATED_FAULTS: 'containerd.start:hang' } });
    file('p.json', CONTAINERD);
    const { exit, err } = await rdctl(['apply', '-f', 'p.json', '--timeout', '2s']);
    expect(exit).toBe(4);
    expect(err).toContain('has not converged within 2 s');
  });

  test('another apply in progress: waits, names it, and exits 4', async () => {
    const { rdctl, proxy, file } = await stage();
    file('p.json', CONTAINERD);
    const lock = await lockApply(join(proxy.env.RDCTL_HOME ?? '', 'state', 'apply.lock'), { timeoutMs: 1000 });
    const { exit, err } = await rdctl(['apply', '-f', 'p.json', '--timeout', '200ms']);
    expect(exit).toBe(4);
    expect(err).toContain(`pid ${process.pid}`);
    expect(proxy.requests).toEqual([]);
    await lock.release();
    expect((await rdctl(['apply', '-f', 'p.json'])).exit).toBe(0);
  });

  test('another driver than the service has: exit 3', async () => {
    const { rdctl, proxy, file } = await stage();
    file('p.json', CONTAINERD);
    expect((await rdctl(['apply', '-f', 'p.json', '--driver', 'host'])).exit).toBe(3);
    expect(proxy.writes()).toEqual([]);
  });

  test('no service and --no-start: exit 1', async () => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'p.json'), CONTAINERD);
    const { exit, err } = await rdctl(['apply', '-f', 'p.json', '--no-start'], {
      cwd,
      env: { RDCTL_HOME: temporaryDirectory() },
    });
    expect(exit).toBe(1);
    expect(err).toContain('--no-start');
  });

  test('another application: exit 3, and nothing is written', async () => {
    const { env, writes } = await foreignApp({ version: 16 });
    const { exit, err } = await rdctl(['apply', '-f', 'examples/moby.yaml'], { env });
    expect(exit).toBe(3);
    expect(err).toContain('--target rancher-desktop');
    expect(writes()).toEqual([]);
  });

  test.each([
    ['two things at once', ['apply', '-f', 'examples/moby.yaml', '--previous']],
    ['two plans', ['apply', 'a.json', 'b.json']],
  ])('%s: usage, exit 1', async (_what, argv) => {
    const { exit, err } = await rdctl(argv);
    expect(exit).toBe(1);
    expect(err).toContain('Usage:');
  });
});
