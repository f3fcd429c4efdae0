import { spawnSync } from 'node:child_process';
import { LONG } from '../rounds.ts';

export interface Ran {
  status: number;
  out: Buffer;
  err: string;
}

/** Runs a system program to its end. @throws Error when it cannot be started or dies by a signal. */
export function ranProgram(argv: readonly string[], env: Record<string, string> = {}): Ran {
  const [program = '', ...rest] = argv;
  const ran = spawnSync(program, rest, { env: { ...process.env, ...env }, maxBuffer: 1 << 29, timeout: 120_000 });
  if (ran.error) throw ran.error;
  if (ran.status === null) throw new Error(`${program} was ended by ${ran.signal}`);
  return { status: ran.status, out: ran.stdout, err: ran.stderr.toString() };
}

/** Like `ranProgram`, but returns only the exit status: programs that it leaves running would keep its streams open. */
export function statusOf(argv: readonly string[], env: Record<string, string> = {}): number {
  const [program = '', ...rest] = argv;
  const ran = spawnSync(program, rest, { env: { ...process.env, ...env }, stdio: 'ignore', timeout: 120_000 });
  if (ran.error) throw ran.error;
  if (ran.status === null) throw new Error(`${program} was ended by ${ran.signal}`);
  return ran.status;
}

/** Whether Wine is asked as well: only in a long run, because it takes longer than all others together. */
export const WITH_WINE = LONG;

/** The Debian package of every program that a proof needs. */
const PACKAGES: Readonly<Record<string, string>> = {
  python3: 'python3',
  xmllint: 'libxml2-utils',
  hivexregedit: 'libwin-hivex-perl',
  ...(WITH_WINE ? { wine: 'wine', wineserver: 'wine' } : {}),
};

/**
 * Why the independent programs cannot check exported files here; undefined when they can. Reported on standard error, because a
 * silent skip looks like a pass. With `RDCTL_REQUIRE_REAL=1` it throws instead.
 */
export function whyNoIndependentPrograms(programs = Object.keys(PACKAGES)): string | undefined {
  const missing = programs.filter((name) => spawnSync('which', [name]).status !== 0);
  if (missing.length === 0) return undefined;
  const packages = [...new Set(missing.map((name) => PACKAGES[name]))].join(' ');
  const message = `exported profiles cannot be checked by other programs: ${missing.join(', ')} missing; fix: apt-get install --no-install-recommends ${packages}`;
  if (process.env.RDCTL_REQUIRE_REAL === '1') throw new Error(message);
  process.stderr.write(`\nSKIPPED: ${message}\n`);
  return message;
}
