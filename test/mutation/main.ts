import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Mutant, sampleMutants } from './mutants.ts';
import type { Reached } from './reached.ts';

/** What the quickest of the tests do not notice goes to the others. */
const FIRST = 6;
/** A mutant that never ends was noticed. */
const LIMIT_MS = 300_000;

/**
 * `npm run mutation [-- COUNT]`: how many of a fixed sample of small mistakes the unit tests notice, and those that they do not. It
 * measures, and ends well whatever it finds.
 */
async function main(count: number): Promise<void> {
  const mutants = sampleMutants(count);
  const env = { RDCTL_MUTANTS: String(count) };
  const tests = await reachedBy(env);
  const missed: Mutant[] = [];
  for (const mutant of mutants) {
    const files = tests
      .filter(({ mutants: reached }) => reached.includes(mutant.id))
      .sort((one, other) => one.ms - other.ms)
      .map(({ file }) => file);
    const noticed = await notices(files, { ...env, RDCTL_MUTANT: String(mutant.id) });
    const found = files.length === 0 ? 'not reached' : noticed ? 'noticed' : 'missed';
    if (!noticed) missed.push(mutant);
    process.stderr.write(`${mutant.id + 1}/${count} ${found}: ${mutant.file}:${mutant.line} ${mutant.what}\n`);
  }
  report(mutants, missed);
}

/** Runs all unit tests once without a mutant in force. */
async function reachedBy(env: Record<string, string>): Promise<Reached[]> {
  const folder = mkdtempSync(join(tmpdir(), 'rdctl-mutants-'));
  try {
    const log = join(folder, 'reached');
    writeFileSync(log, '');
    if (!(await pass([], { ...env, RDCTL_MUTANTS_LOG: log }))) throw new Error('the tests fail without a mutant');
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function notices(files: string[], env: Record<string, string>): Promise<boolean> {
  for (const some of [files.slice(0, FIRST), files.slice(FIRST)])
    if (some.length > 0 && !(await pass(some, env))) return true;
  return false;
}

function pass(files: string[], env: Record<string, string>): Promise<boolean> {
  return new Promise((done, fail) => {
    const args = ['run', '--config', 'test/mutation/vitest.config.ts', '--bail', '1', '--reporter', 'dot', ...files];
    const child = spawn('node_modules/.bin/vitest', args, {
      env: { ...process.env, ...env },
      stdio: 'ignore',
      detached: true,
    });
    // The whole group: a worker in an endless loop does not hear its parent.
    const timer = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), LIMIT_MS);
    child.once('error', fail);
    child.once('close', (exit) => {
      clearTimeout(timer);
      done(exit === 0);
    });
  });
}

function report(mutants: Mutant[], missed: Mutant[]): void {
  const folderOf = ({ file }: Mutant) => (file.startsWith('profiles') ? 'profiles' : dirname(file));
  const folders = [...new Set(mutants.map(folderOf))].sort();
  for (const folder of folders) {
    const inside = (all: Mutant[]) => all.filter((mutant) => folderOf(mutant).startsWith(folder)).length;
    process.stdout.write(`${folder}: ${inside(mutants) - inside(missed)} of ${inside(mutants)} noticed\n`);
  }
  process.stdout.write(`all: ${mutants.length - missed.length} of ${mutants.length} noticed\n`);
}

await main(Number(process.argv[2] ?? 150));
