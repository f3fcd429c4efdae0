import { statSync } from 'node:fs';
import { realpath, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { messageOf, RdError } from '../../../../errors.ts';
import { systemCode } from '../../../../os/io-error.ts';
import { findProgram, programPath } from '../../../../os/program.ts';
import { lastLines } from '../../../../os/run.ts';
import type { Confinement, DriverContext } from '../../../driver.ts';
import type { Run } from '../../../shell.ts';
import {
  type Access,
  type ConfinedRun,
  type HostLayout,
  type Life,
  placesOf,
  resolverPlace,
  rootsOf,
} from './access.ts';
import { bubblewrap } from './bubblewrap.ts';
import { landlock } from './landlock.ts';

/** A wrapper with arguments, which executes the program that follows. */
interface Wrapper {
  /** Empty if programs run unconfined. */
  within: readonly string[];
  /** The wrapper reports the process that it starts; see `DaemonSpec.reportsPid`. */
  reportsPid?: true;
}

/** Confines the programs of a machine to the files that they are to open. */
export interface Confine {
  /** Returns the confinement method, found once by trial. */
  method(): Promise<Confinement>;
  wrap(argv: readonly string[], access: Access, life: Life): Promise<Wrapper>;
}

export interface ConfineParts {
  platform: NodeJS.Platform;
  /** By default, whether this process is root. */
  isRoot?: boolean;
  run: Run;
  /** The environment of the service. */
  env: Readonly<Record<string, string | undefined>>;
  log: DriverContext['log'];
}

const NOTHING: Wrapper = { within: [] };
const TRY_MS = 10_000;
const RESOLVER = '/etc/resolv.conf';
const NAMES = { bwrap: 'bubblewrap', setpriv: 'landlock' } as const;

export function confine({ platform, isRoot = process.getuid?.() === 0, run, env, log }: ConfineParts): Confine {
  const search = programPath(env.PATH);
  let known: Promise<Confinement> | undefined;

  async function choice(): Promise<Confinement> {
    if (env.RDCTL_QEMU_CONFINE === '0') return UNWANTED;
    const chosen = await choose(platform, attempt);
    if (chosen.by === 'nothing' && platform === 'linux') log('warn', 'QEMU runs unconfined', { why: chosen.because });
    return chosen;
  }

  const method = () => (known ??= choice());

  async function layout(program: string): Promise<HostLayout> {
    const resolver = await realpath(RESOLVER).catch(() => undefined);
    const places = await placesOf([program, await realpath(program)]);
    return { isRoot, roots: await rootsOf(), extra: [...places, ...resolverPlace(resolver)] };
  }

  /**
   * Returns the wrapper for a program.
   * @returns undefined for a missing program: the caller then meets the usual error.
   */
  async function within(method: 'bubblewrap' | 'landlock', program: string, access: Access, life: Life) {
    const found = await findProgram(basename(program), program.startsWith('/') ? dirname(program) : search);
    if (found === undefined) return undefined;
    const facts = await layout(found);
    return method === 'bubblewrap'
      ? bubblewrap(access, facts, life)
      : landlock(withoutMissing(access), facts, isDirectory);
  }

  /**
   * Tries a method.
   * @returns the reason that it does not work here, as a clause.
   */
  async function attempt(name: keyof typeof NAMES): Promise<string | undefined> {
    if ((await findProgram(name, search)) === undefined) return `${name} is not installed`;
    try {
      await run([...((await within(NAMES[name], 'true', {}, 'run')) ?? []), 'true'], { timeoutMs: TRY_MS });
      return undefined;
    } catch (error) {
      const said = error instanceof RdError ? lastLines(error.details.join('\n')).at(-1) : undefined;
      return `${name} does not work here (${said ?? messageOf(error)})`;
    }
  }

  return {
    method,
    async wrap([program = ''], access, life) {
      const { by } = await method();
      if (by === 'nothing') return NOTHING;
      for (const file of access.writes ?? []) await ensureThere(file);
      const words = await within(by, program, access, life);
      if (words === undefined) return NOTHING;
      return { within: words, ...(by === 'bubblewrap' && life === 'daemon' ? { reportsPid: true } : {}) };
    },
  };
}

/** Runs programs that have an `access` confined to it. */
export function confineRun(run: Run, confined: Confine): ConfinedRun {
  return async (argv, { access, ...options } = {}) =>
    run(argv, { ...options, ...(access === undefined ? {} : await confined.wrap(argv, access, 'run')) });
}

const UNWANTED: Confinement = { by: 'nothing', because: 'RDCTL_QEMU_CONFINE=0 says so' };

/** Returns the first method that works. */
async function choose(
  platform: NodeJS.Platform,
  attempt: (name: keyof typeof NAMES) => Promise<string | undefined>,
): Promise<Confinement> {
  if (platform !== 'linux') return { by: 'nothing', because: 'only Linux has what it takes' };
  const reasons: string[] = [];
  for (const name of ['bwrap', 'setpriv'] as const) {
    const why = await attempt(name);
    if (why === undefined) return { by: NAMES[name] };
    reasons.push(why);
  }
  return { by: 'nothing', because: reasons.join(', and ') };
}

/** Creates a missing file: only existing files can be shown to a program. */
async function ensureThere(file: string): Promise<void> {
  await writeFile(file, '', { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw error;
  });
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Returns the access without devices that this computer does not have: a rule needs its file. */
function withoutMissing(access: Access): Access {
  const devices = (access.devices ?? []).filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined);
  return { ...access, devices };
}

/** Confines nothing: for tests, and for programs that handle no data of a guest. */
export const UNCONFINED: Confine = { method: async () => UNWANTED, wrap: async () => NOTHING };
