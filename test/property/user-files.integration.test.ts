import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import type { Observed } from '../../src/plan/backend.ts';
import { makePlan } from '../../src/plan/plan.ts';
import { userFilesOf } from '../../src/plan/user-files.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { runsWith } from '../helpers/api.ts';
import { followedIntegration } from '../helpers/followed-integration.ts';
import { rounds } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { fingerprint } from '../helpers/user-home.ts';

type Power = 'started' | 'stopped';
/** What a profile requests. */
interface Step {
  /** Manual changes before the plan. */
  meanwhile: keyof typeof MEANWHILE;
  path: Settings['application']['pathManagementStrategy'];
  autoStart: boolean;
  engine: 'moby' | 'containerd';
  cluster: boolean;
  port: number;
  power: Power;
}

const metaOf = (name: string) => join('contexts', 'meta', createHash('sha256').update(name).digest('hex'), 'meta.json');
const META = metaOf('rdctl');

/** What users do with their files. */
const MEANWHILE = {
  nothing: () => undefined,
  'another context is selected': (home: string) => {
    put(join(home, '.docker', metaOf('work')), '{"Name":"work"}');
    putConfig(home, { currentContext: 'work' });
  },
  'a context that is gone is selected': (home: string) => putConfig(home, { currentContext: 'gone' }),
  'the configuration of docker is empty': (home: string) => put(join(home, '.docker', 'config.json'), ''),
  'the default is selected': (home: string) => putConfig(home, {}),
  'ours is selected': (home: string) => {
    if (existsSync(join(home, '.docker', META))) putConfig(home, { auths: {}, currentContext: 'rdctl' });
  },
  'there is no configuration of docker': (home: string) =>
    rmSync(join(home, '.docker', 'config.json'), { force: true }),
  'the configuration of docker is damaged': (home: string) =>
    put(join(home, '.docker', 'config.json'), '{"currentContext":'),
  'the block is taken out': (home: string) => put(join(home, '.bashrc'), '# mine\n'),
  'a shell is added': (home: string) => put(join(home, '.zshrc'), 'setopt autocd'),
  'a file has a second name': (home: string) => {
    rmSync(join(home, '.cshrc'), { force: true });
    put(join(home, 'cshrc'), '# two names\n');
    linkSync(join(home, 'cshrc'), join(home, '.cshrc'));
  },
  'kubectl forgets us': (home: string) => rmSync(join(home, '.kube', 'config'), { force: true }),
  'somebody else starts at login': (home: string) =>
    put(join(home, '.config', 'autostart', 'rdctl.desktop'), '[Desktop Entry]\n'),
  'nobody starts at login': (home: string) =>
    rmSync(join(home, '.config', 'autostart', 'rdctl.desktop'), { force: true }),
};

function put(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function putConfig(home: string, config: object): void {
  put(join(home, '.docker', 'config.json'), JSON.stringify(config));
}

const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  meanwhile: fc.constantFrom(...(Object.keys(MEANWHILE) as (keyof typeof MEANWHILE)[])),
  path: fc.constantFrom('rcfiles' as const, 'manual' as const),
  autoStart: fc.boolean(),
  engine: fc.constantFrom('moby' as const, 'moby' as const, 'containerd' as const),
  cluster: fc.boolean(),
  port: fc.constantFrom(6443, 6443, 6444),
  power: fc.constantFrom('started' as const, 'stopped' as const),
});

/** A backend that does at once what is requested, and the service that updates the user's files. */
async function world() {
  const home = temporaryDirectory();
  const elsewhere = temporaryDirectory();
  put(join(home, '.bashrc'), 'export EDITOR=vi');
  const user = followedIntegration(home, { power: 'stopped' });
  let settings = structuredClone(user.settings);
  settings.kubernetes.version = '1.33.6';
  let power: Power = 'stopped';
  let installed = false;
  let observed: Observed = {
    machine: { state: 'off' },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster: { state: 'absent' },
  };
  await user.userFiles();

  function obey(next: Settings, powerAfter: Power): void {
    const before = observed;
    settings = next;
    power = powerAfter;
    user.change((own) => Object.assign(own, next));
    const up = runsWith(settings);
    if (settings.kubernetes.enabled && power === 'started') installed = true;
    const atRest = installed
      ? ({ state: 'stopped', installedVersion: '1.33.6' } as const)
      : ({ state: 'absent' } as const);
    const off: Observed = {
      machine: { state: 'off' },
      engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
      cluster: atRest,
    };
    if (power === 'started' && up.cluster.state === 'running') {
      const kubeconfig = clusterFile(elsewhere, settings.kubernetes.port);
      up.cluster = { ...up.cluster, kubeconfig };
    } else up.cluster = atRest;
    observed = power === 'started' ? up : off;
    // A restart between two running states, which may be all that is observed of it.
    if (JSON.stringify(before) !== JSON.stringify(observed)) user.sees(off, power);
    user.sees(observed, power);
  }

  async function plan(step: Step) {
    const { plan: made } = makePlan({
      ...DEFAULT_BLOCKS,
      request: {
        settings: {
          version: 19,
          application: { pathManagementStrategy: step.path, autoStart: step.autoStart },
          containerEngine: { name: step.engine },
          kubernetes: { enabled: step.cluster, port: step.port },
        },
        state: step.power,
        prune: [],
      },
      live: settings,
      power,
      locks: {},
      driver: SIMULATED_INFO,
      observed,
      target: { product: 'rdctl', driver: 'simulated', simulated: true },
      generation: 1,
      ...facts(await user.userFiles()),
    });
    return made;
  }

  return {
    home,
    user,
    plan,
    apply(step: Step) {
      const next = structuredClone(settings);
      next.application.pathManagementStrategy = step.path;
      next.application.autoStart = step.autoStart;
      next.containerEngine.name = step.engine;
      next.kubernetes.enabled = step.cluster;
      next.kubernetes.port = step.port;
      obey(next, step.power);
      return user.userFiles();
    },
    async foreseenAgain(step: Step) {
      return userFilesOf(await user.userFiles(), { settings, on: step.power === 'started', cluster: 'none' });
    },
  };
}

const facts = (userFiles: Awaited<ReturnType<ReturnType<typeof followedIntegration>['userFiles']>>) =>
  userFiles ? { userFiles } : {};

/** Its keys stay the same. */
function clusterFile(directory: string, port: number): string {
  const file = join(directory, 'cluster.json');
  const cluster = { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': 'Q0E=' };
  const user = { 'client-certificate-data': 'Q0VSVA==', 'client-key-data': 'a2V5' };
  writeFileSync(file, JSON.stringify({ clusters: [{ name: 'x', cluster }], users: [{ name: 'x', user }] }));
  return file;
}

/** Changes of files between two fingerprints of a home, without our own files and directories. */
function changed(home: string, before: Record<string, string>, after: Record<string, string>): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter(
      (name) =>
        !name.startsWith('.local') && [before[name], after[name]].some((print) => print && !print.endsWith(' ')),
    )
    .flatMap((name) => {
      if (before[name] === after[name]) return [];
      const action = before[name] === undefined ? 'create' : after[name] === undefined ? 'delete' : 'update';
      return [`${action} ${join(home, name)}`];
    })
    .sort();
}

test('a plan lists exactly the files that change, and none the second time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(stepArbitrary, { minLength: 1, maxLength: 6 }), async (steps) => {
      const { home, user, plan, apply, foreseenAgain } = await world();
      for (const step of steps) {
        MEANWHILE[step.meanwhile](home);
        const found = fingerprint(home);
        const { userFiles = [], changes } = await plan(step);
        expect(fingerprint(home), 'a plan changes nothing').toEqual(found);
        if (changes.length > 0) await apply(step);
        const listed = userFiles.map(({ action, file }) => `${action} ${file}`).sort();
        expect(listed, JSON.stringify(step)).toEqual(changed(home, found, fingerprint(home)));
        expect(await foreseenAgain(step), 'the second time').toEqual([]);
        const again = fingerprint(home);
        await apply(step);
        expect(changed(home, again, fingerprint(home))).toEqual([]);
      }
      await user.close();
    }),
    { numRuns: rounds(5, 15) },
  );
});

test('each file is listed with its change', async () => {
  const { home, plan, apply } = await world();
  const step: Step = {
    meanwhile: 'nothing',
    path: 'manual',
    autoStart: true,
    engine: 'moby',
    cluster: true,
    port: 6443,
    power: 'started',
  };
  const shown = async (next: Step) => {
    const { userFiles = [] } = await plan(next);
    await apply(next);
    return userFiles.map(({ file, action, what }) => `${action} ${file.slice(home.length + 1)}: ${what}`);
  };
  const bin = join(home, '.local', 'share', 'rdctl', 'bin');
  const first = await shown(step);
  expect(first).toContain(`update .bashrc: removes ${bin} from PATH`);
  expect(first.slice(-4)).toEqual([
    'create .config/autostart/rdctl.desktop: starts rdctl at login',
    `create .docker/${META}: makes docker context rdctl`,
    'create .docker/config.json: selects docker context rdctl',
    'create .kube/config: adds cluster, user and context rdctl',
  ]);
  expect(readFileSync(join(home, '.bashrc'), 'utf8')).toBe('export EDITOR=vi');
  expect(await shown({ ...step, autoStart: false, power: 'stopped' })).toEqual([
    'delete .config/autostart/rdctl.desktop: no longer starts rdctl at login',
    `update .docker/${META}: updates docker context rdctl`,
    'delete .docker/config.json: selects docker context default',
  ]);
  expect(await shown({ ...step, autoStart: false })).toEqual([
    'create .docker/config.json: selects docker context rdctl',
    `update .docker/${META}: updates docker context rdctl`,
  ]);
  expect(await shown({ ...step, autoStart: false, engine: 'containerd', cluster: false })).toEqual([
    'delete .docker/config.json: selects docker context default',
    `delete .docker/${META}: removes docker context rdctl`,
    'delete .kube/config: removes cluster, user and context rdctl',
  ]);
});
