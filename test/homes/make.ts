/**
 * Makes the homes of earlier commits that `test/service/earlier-homes.integration.test.ts` opens: `node run.mjs test/homes/make.ts [COMMIT…]`.
 * Each is what the tool of that commit left behind after a short session with the simulated driver, ended with kill -9. They are committed:
 * only a change of a stored file adds one, of the commit before the change. Needs git, tar and the history of the repository.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import type { EarlierHome } from '../helpers/earlier-home.ts';

interface Session {
  commit: string;
  /** What later commits store differently. */
  about: string;
  /** Command lines of that commit's tool, in order. */
  steps: readonly string[];
  /** A last command line that is killed, with the service, as soon as this file of the home is there. */
  killed?: { during: string; step: string };
}

const START = 'apply -f {root}/profile.yaml --driver simulated';
/** Restarts nothing, so that the kill comes when all is done. */
const CHANGE = 'set --images.namespace=team';
const SNAPSHOT = 'snapshot create before --description of-an-earlier-release';

const SESSIONS: readonly Session[] = [
  {
    commit: 'f3edf024',
    about: 'no machine block in the state, no mounts and ports in specs',
    steps: [START, SNAPSHOT, CHANGE],
  },
  { commit: '7c83313d', about: 'a machine block, no history', steps: [START, SNAPSHOT, CHANGE] },
  { commit: '2258a133', about: 'a history without losses, sources and port forwards', steps: [START, CHANGE] },
  {
    commit: '37dcf946',
    about: 'tokens, no proven state',
    steps: [START, CHANGE, 'token create --name ci --scope read'],
  },
  {
    commit: 'c8d95cd5',
    about: 'a proven state, an apply that was killed in the middle, no kept profiles',
    steps: [START, CHANGE],
    killed: { during: 'state/transaction.json', step: 'apply -f {root}/other.yaml' },
  },
  {
    commit: '0ee571c6',
    about: 'kept profiles, snapshots that cover nothing',
    steps: [`${START} --keep`, SNAPSHOT, CHANGE],
  },
  { commit: '972e71f2', about: 'kept profiles without what an apply foresees', steps: [`${START} --keep`, CHANGE] },
  {
    commit: '7f487a96',
    about: 'the home before formats were checked',
    steps: [`${START} --keep`, SNAPSHOT, CHANGE, 'token create --name ci --scope read'],
  },
  { commit: 'f07b1628', about: 'kept profiles without what they replaced', steps: [`${START} --keep`, CHANGE] },
  { commit: '896280c0', about: 'snapshots without a MAC', steps: [START, SNAPSHOT, CHANGE] },
];

const PROFILE = `apiVersion: rdctl/v1
kind: Profile
metadata: { name: team }
state: started
settings:
  version: 19
  containerEngine: { name: moby }
  kubernetes: { enabled: true, version: 1.32.8 }
portForwards: [{ namespace: default, service: web, k8sPort: 80, hostPort: 28080 }]
`;
const FILES = { 'profile.yaml': PROFILE, 'other.yaml': PROFILE.replace('moby', 'containerd') };

/** What a home can do without: made again, or about the computer. */
const LEFT_OUT = /^home\/(?:logs|cache|bin)\/|^home\/state\/reserve\/|\.sock$|^user\//;
/** Above the highest that Linux gives. */
const DEAD_PID = 5_000_000;

const wanted = process.argv.slice(2);
for (const session of SESSIONS) {
  if (wanted.length > 0 && !wanted.includes(session.commit)) continue;
  const home = await make(session);
  writeFileSync(resolve('test/homes', `${session.commit}.json`), `${JSON.stringify(home, null, 1)}\n`);
  process.stdout.write(`${session.commit}: ${Object.keys(home.files).length} files\n`);
}

async function make({ commit, about, steps, killed }: Session): Promise<EarlierHome> {
  const tool = join(built(commit), 'dist', 'rdctl.cjs');
  const root = mkdtempSync(join(tmpdir(), 'rdctl-home-'));
  const home = join(root, 'home');
  const env = { PATH: process.env.PATH, HOME: join(root, 'user'), RDCTL_HOME: home, RDCTL_SIMULATED_LATENCY_MS: '0' };
  mkdirSync(env.HOME);
  mkdirSync(home);
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(root, name), text);
  const words = (step: string) => [tool, ...step.replaceAll('{root}', root).split(' ')];
  try {
    for (const step of steps) execFileSync(process.execPath, words(step), { env, stdio: ['ignore', 'ignore', 'pipe'] });
    if (killed) {
      const file = join(home, killed.during);
      const child = spawn(process.execPath, words(killed.step), { env, stdio: ['ignore', 'ignore', 'pipe'] });
      while (!existsSync(file) && child.exitCode === null) await new Promise((next) => setImmediate(next));
      process.kill(pidOf(home), 'SIGKILL');
      child.kill('SIGKILL');
      if (!existsSync(file)) throw new Error(`${commit}: ${killed.during} was gone before the kill`);
    } else process.kill(pidOf(home), 'SIGKILL');
    const date = execFileSync('git', ['show', '-s', '--format=%cI', commit], { encoding: 'utf8' }).trim();
    return { commit, about, files: withoutCircumstances(filesBelow(root), root, Date.parse(date)) };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** The program of a commit, built in a directory from which it finds our packages. */
function built(commit: string): string {
  const directory = resolve('node_modules/.cache/rdctl/homes', commit);
  if (existsSync(join(directory, 'dist', 'rdctl.cjs'))) return directory;
  mkdirSync(directory, { recursive: true });
  const archive = execFileSync('git', ['archive', commit], { maxBuffer: 1024 ** 3 });
  execFileSync('tar', ['-x', '-C', directory], { input: archive });
  const build = () => execFileSync(process.execPath, ['build.mjs'], { cwd: directory, stdio: 'inherit' });
  try {
    build();
  } catch {
    // It needs packages that we do not have any more.
    execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: directory, stdio: 'inherit' });
    build();
  }
  return directory;
}

function pidOf(home: string): number {
  return JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8')).pid;
}

function filesBelow(root: string): Map<string, string> {
  const files = new Map<string, string>();
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
  for (const name of names.map((each) => relative(root, join(root, each)))) {
    if (LEFT_OUT.test(name) || !statSync(join(root, name)).isFile()) continue;
    files.set(name, readFileSync(join(root, name), 'utf8'));
  }
  return files;
}

/**
 * Without what differs from run to run, and what is of this computer: paths, processes, secrets, identifiers, times. What snapshots hold stays
 * byte for byte, because they have digests of it.
 */
function withoutCircumstances(files: ReadonlyMap<string, string>, root: string, base: number): Record<string, string> {
  const { password } = JSON.parse(files.get('home/app-engine.json') ?? '{}');
  const all = [...files].map(([name, text]) => `${name}\n${text}`).join('\n');
  const ids = distinct(all, /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g);
  const dates = distinct(all, /20\d\d-\d\d-\d\dT[\d:.]+Z/g).sort();
  const times = distinct(all, /\b1[789]\d{11}\b/g).sort();
  const id = (text: string) => `00000000-0000-4000-8000-${String(ids.indexOf(text)).padStart(12, '0')}`;
  const named = (name: string) =>
    ids
      .reduce((text, each) => text.replaceAll(each, id(each)), name)
      .replace(/lock\/\d+-[0-9a-f]{16}\.json$/, `lock/${DEAD_PID}-0000000000000000.json`);
  const plain = (text: string) =>
    [
      ...ids.map((each) => [each, id(each)] as const),
      ...dates.map((each, index) => [each, new Date(base + index * 1000).toISOString()] as const),
      ...times.map((each, index) => [each, String(base + index * 1000)] as const),
      [root, '{root}'] as const,
      [String(password), 'the-password-of-a-service-that-was-killed'] as const,
    ]
      .reduce((now, [from, to]) => now.replaceAll(from, to), text.trimEnd())
      .replace(/("pid": ?)\d+/g, `$1${DEAD_PID}`)
      .replace(/("sha256": ?")[0-9a-f]{64}/g, `$1${'0'.repeat(64)}`)
      .replace(/("(?:ms|totalMs|seconds)": ?)[\d.]+/g, '$1100')
      .replace(/("id": ?)"\d+:\d+"/g, '$1"0:0"')
      .concat('\n');
  return Object.fromEntries(
    [...files].map(([name, text]) => [named(name), name.startsWith('home/snapshots/') ? text : plain(text)]),
  );
}

function distinct(text: string, pattern: RegExp): string[] {
  return [...new Set(text.match(pattern))];
}
