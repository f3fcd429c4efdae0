import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Mutant, sampleMutants } from './mutants.ts';
import type { Reached } from './reached.ts';

type Found = 'noticed' | 'noticed at full length' | 'missed' | 'not reached';

/** What the fastest tests do not detect is run against the others. */
const FIRST = 6;
/** A mutant that never ends counts as detected; all tests together take longer. */
const LIMIT_MS = 300_000;
const LIMIT_OF_ALL_MS = 3_600_000;

/**
 * `npm run mutation [-- COUNT]`: how many of a fixed sample of small mistakes the unit tests detect, the undetected ones, and how many
 * of these the searches detect at full length. It is a measurement, and succeeds with any result.
 */
async function main(count: number): Promise<void> {
  const mutants = sampleMutants(count);
  const env = { RDCTL_MUTANTS: String(count) };
  const tests = await reachedBy(env);
  const found = new Map<Mutant, Found>();
  for (const mutant of mutants) {
    const files = tests
      .filter(({ mutants: reached }) => reached.includes(mutant.id))
      .sort((one, other) => one.ms - other.ms)
      .map(({ file }) => file);
    const how = await notice(files, { ...env, RDCTL_MUTANT: String(mutant.id) });
    found.set(mutant, how);
    process.stderr.write(`${found.size}/${count} ${how}: ${mutant.file}:${mutant.line} ${mutant.what}\n`);
  }
  report(found);
}

/** Runs all unit tests once without an active mutant. */
async function reachedBy(env: Record<string, string>): Promise<Reached[]> {
  const folder = mkdtempSync(join(tmpdir(), 'rdctl-mutants-'));
  try {
    const log = join(folder, 'reached');
    writeFileSync(log, '');
    if (!(await pass([], { ...env, RDCTL_MUTANTS_LOG: log }, LIMIT_OF_ALL_MS)))
      throw new Error('the tests fail without a mutant');
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function notice(files: string[], env: Record<string, string>): Promise<Found> {
  if (files.length === 0) return 'not reached';
  for (const some of [files.slice(0, FIRST), files.slice(FIRST)])
    if (some.length > 0 && !(await pass(some, env))) return 'noticed';
  return (await pass(files, { ...env, RDCTL_TEST_LONG: '1' })) ? 'missed' : 'noticed at full length';
}

function pass(files: string[], env: Record<string, string>, limitMs = LIMIT_MS): Promise<boolean> {
  return new Promise((done, fail) => {
    const args = ['run', '--config', 'test/mutation/vitest.config.ts', '--bail', '1', '--reporter', 'dot', ...files];
    const child = spawn('node_modules/.bin/vitest', args, {
      env: { ...process.env, ...env },
      stdio: 'ignore',
      detached: true,
    });
    // The whole process group: a worker in an endless loop ignores its parent.
    const timer = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), limitMs);
    child.once('error', fail);
    child.once('close', (exit) => {
      clearTimeout(timer);
      done(exit === 0);
    });
  });
}

function report(found: Map<Mutant, Found>): void {
  const folders = new Map<string, Found[]>();
  for (const [{ file }, how] of found) {
    const folder = file.startsWith('profiles') ? 'profiles' : dirname(file).split('/').slice(0, 2).join('/');
    folders.set(folder, [...(folders.get(folder) ?? []), how]);
  }
  folders.set('all', [...found.values()]);
  for (const [folder, all] of folders) {
    const count = (wanted: Found) => all.filter((how) => how === wanted).length;
    const long = count('noticed at full length');
    const short = count('noticed');
    process.stdout.write(`${folder}: ${short} of ${all.length} noticed, ${short + long} at full length\n`);
  }
}

await main(Number(process.argv[2] ?? 150));
