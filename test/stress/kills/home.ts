import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { findSnapshot } from '../../../src/features/snapshots/catalogue.ts';
import { readManifest, verify } from '../../../src/features/snapshots/manifest.ts';
import type { JsonObject } from '../../../src/json.ts';
import { rdctlProgram } from '../../helpers/cli.ts';
import { fingerprint } from '../../helpers/user-home.ts';

/** A home of the built tool between foreign files: next to it, in it, and at the targets of links in it. */
export interface KillsHome {
  home: string;
  env: Record<string, string>;
  rdctl: (...argv: string[]) => ReturnType<typeof rdctlProgram>;
  /** Throws when a foreign file has changed. */
  checkOthers(): void;
  /** Throws when there is a file that a clean run does not have, or too many of a kind. */
  checkFiles(): void;
  /** Throws when the home differs from its state before the first start. */
  checkClean(): void;
  /** The settings document in a snapshot. */
  snapshotSettings(name: string): Promise<JsonObject>;
  /** Throws when a snapshot could not be restored. */
  checkSnapshots(names: readonly string[]): Promise<void>;
  /** The process of the service that holds the lock, even before it has announced itself. */
  servicePid(): number | undefined;
}

const USERS = [
  'notes.txt',
  '.notes.0123456789ab.tmp',
  'config/mine.json',
  'state/mine.json',
  'logs/mine.log',
  'snapshots/README',
];

/** Every file of a home without unfinished work, with its maximum number. */
const FILES: readonly (readonly [RegExp, number])[] = [
  [/^app-engine\.json$/, 1],
  [/^config\/settings(?:\.previous)?\.json$/, 2],
  [/^logs\/service(?:-output|\.\d+)?\.log$/, 5],
  [/^state\/(?:state|first-run|proven|settings\.written)\.json$/, 4],
  [/^state\/transaction\.json$/, 1],
  [/^state\/history\.jsonl$/, 1],
  [/^state\/tokens\/[a-z0-9.-]+\.json$/, 1],
  [/^state\/kept\.json$/, 1],
  [/^state\/apply\.lock\/\d+-[0-9a-f]{16}\.json$/, 1],
  [/^state\/apply\.lock\/\d+-[0-9a-f]{16}\.json\.[0-9a-f]{8}$/, 1],
  [/^state\/service\.lock\/\d+-[0-9a-f]{16}\.json$/, 1],
  [/^state\/reserve\/[0-7]$/, 8],
  [/^state\/run\/service\.sock$/, 1],
  [/^state\/drivers\/simulated\/machine\.json$/, 1],
  [/^extensions\/[A-Za-z0-9_-]+\//, 20],
  [/^snapshots\.key$/, 1],
  [
    /^snapshots\/[0-9a-f-]{36}\/(?:metadata\.json|settings\.json|manifest\.json|rdctl-(?:complete|mac)\.txt|0-machine\.json)$/,
    6 * 6,
  ],
];

export function killsHome(): KillsHome {
  const top = mkdtempSync(join(tmpdir(), 'rdctl-kills-'));
  const [home, user, neighbour] = ['home', 'user', 'neighbour'].map((name) => join(top, name)) as [
    string,
    string,
    string,
  ];
  const env = { RDCTL_HOME: home, HOME: user, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '8' };
  const rdctl = (...argv: string[]) => rdctlProgram(argv, { env });
  onTestFinished(async () => {
    await rdctl('shutdown');
    rmSync(top, { recursive: true, force: true });
  });
  const write = (path: string) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `of the user: ${path}`);
  };
  for (const name of USERS) write(join(home, name));
  for (const name of ['settings.json', '.settings.json.0123456789ab.tmp', 'deep/complete.txt'])
    write(join(neighbour, name));
  write(join(user, '.bashrc'));
  symlinkSync(neighbour, join(home, 'state', 'neighbour'));
  const ofTheUser = fingerprint(home);
  const others = [neighbour, user].map((directory) => [directory, fingerprint(directory)] as const);

  const filesOfOurs = () =>
    readdirSync(home, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(home.length + 1))
      .filter((name) => ofTheUser[name] === undefined);

  return {
    home,
    env,
    rdctl,
    checkOthers() {
      for (const [directory, before] of others) expect(fingerprint(directory), directory).toMatchObject(before);
      for (const [name, facts] of Object.entries(ofTheUser)) {
        // Contents of directories on both sides are compared file by file.
        if (facts.endsWith(' ')) continue;
        const path = join(home, name);
        const link = facts.startsWith('777 /');
        expect(link ? readlinkSync(path) : readFileSync(path, 'utf8'), name).toBe(
          link ? neighbour : `of the user: ${path}`,
        );
      }
    },
    checkFiles() {
      const files = filesOfOurs();
      expect(files.filter((name) => !FILES.some(([pattern]) => pattern.test(name)))).toEqual([]);
      for (const [pattern, most] of FILES) {
        const found = files.filter((name) => pattern.test(name));
        expect(found.length, found.join(', ')).toBeLessThanOrEqual(most);
      }
    },
    checkClean() {
      expect(fingerprint(home)).toEqual(ofTheUser);
    },
    async snapshotSettings(name) {
      const { directory } = await findSnapshot(join(home, 'snapshots'), name);
      return JSON.parse(readFileSync(join(directory, 'settings.json'), 'utf8'));
    },
    async checkSnapshots(names) {
      const signal = new AbortController().signal;
      for (const name of names) {
        const { directory, mark } = await findSnapshot(join(home, 'snapshots'), name);
        await verify(directory, await readManifest(directory, mark), signal);
      }
    },
    servicePid() {
      const lock = join(home, 'state', 'service.lock');
      const entries = filesIn(lock).flatMap((name) => {
        try {
          const { pid, held } = JSON.parse(readFileSync(join(lock, name), 'utf8'));
          return held === true && isAlive(pid) ? [pid] : [];
        } catch {
          // Removed in the meantime.
          return [];
        }
      });
      return entries[0];
    },
  };
}

/** Open files and resident bytes of a process. */
export function usageOf(pid: number): { files: number; bytes: number } {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return { files: readdirSync(`/proc/${pid}/fd`).length, bytes: pages * 4096 };
}

export function isAlive(pid: number): boolean {
  try {
    // A zombie counts as dead.
    return (
      !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8')) && statSync(`/proc/${pid}`).isDirectory()
    );
  } catch {
    return false;
  }
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
}
