import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDraft } from '../src/features/snapshots/creation.ts';
import { newKey, writeKey } from '../src/features/snapshots/key.ts';
import { paired, type Result, result } from './measure.ts';

const FILES = 2000;
const FILE_BYTES = 64 * 1024;

/** Saving a tree as a snapshot, digests and flush included, against the system's own programs for the same. */
export async function snapshot(rounds: number): Promise<Result[]> {
  const folder = mkdtempSync(join(tmpdir(), 'rdctl-bench-'));
  try {
    const kept = join(folder, 'kept');
    for (let index = 0; index < FILES; index++) {
      const below = join(kept, String(index % 50));
      mkdirSync(below, { recursive: true });
      writeFileSync(join(below, String(index)), randomBytes(FILE_BYTES));
    }
    const subject = () =>
      timed(folder, async (to) => {
        const record = { created: new Date().toISOString(), name: 'bench', description: '' };
        await writeKey(to, newKey([]));
        const draft = createDraft({ root: to, record, driver: 'simulated', kept: [kept], settings: () => '{}' });
        const { signal } = new AbortController();
        await draft.save(signal);
        await draft.complete(signal);
      });
    const reference = () =>
      timed(folder, async (to) => {
        await finish('cp', ['-a', kept, to]);
        await finish('find', [to, '-type', 'f', '-exec', 'sha256sum', '{}', '+']);
        await finish('sync', ['--file-system', to]);
      });
    const figures = await paired(rounds, subject, reference);
    return [
      result({
        name: 'snapshot: 2,000 files, 125 MiB',
        compared: 'save with digests / cp, sha256sum and sync',
        ...figures,
        aim: { sign: '<=', value: 1.5 },
        unit: 'ms',
        rounds,
      }),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function timed(folder: string, work: (to: string) => Promise<void>): Promise<number> {
  const to = mkdtempSync(join(folder, 'to-'));
  const begun = performance.now();
  await work(to);
  const took = performance.now() - begun;
  rmSync(to, { recursive: true, force: true });
  return took;
}

function finish(program: string, args: readonly string[]): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    child.once('error', fail);
    child.once('close', (status) => (status === 0 ? done() : fail(new Error(`${program} ended with ${status}`))));
  });
}
