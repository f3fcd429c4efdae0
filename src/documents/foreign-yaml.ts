import { Worker } from 'node:worker_threads';
import type { JsonValue } from '../json.ts';
import { source } from './yaml-worker.ts?source';

/** What the thread says: the document as JSON, or what is wrong with it as a clause. */
export type Answer = { text: string } | { problem: string };

/** Milliseconds for one document. A compose file takes some ten. */
const LIMIT_MS = 5_000;
/** Mebibytes of the thread. The largest document that is read takes about a fifth of it. */
const HEAP = { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 32 };

/**
 * Reads YAML that somebody else wrote, of at most 1 MiB. It is parsed in a thread of its own, which ends at a deadline: short texts can
 * take a parser long, and nothing else of this process must wait for that. A mistake is told as a clause.
 */
export async function readForeignYaml(
  bytes: Uint8Array,
  limitMs = LIMIT_MS,
): Promise<{ value: JsonValue } | { problem: string }> {
  const answer = await ask(bytes, limitMs);
  return 'text' in answer ? { value: JSON.parse(answer.text) } : answer;
}

function ask(bytes: Uint8Array, limitMs: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(source, {
      eval: true,
      workerData: bytes,
      resourceLimits: HEAP,
      env: {},
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
    });
    const timer = setTimeout(() => {
      end({ problem: `reading it takes longer than ${limitMs / 1000} s` });
    }, limitMs);
    const end = (answer: Answer) => {
      clearTimeout(timer);
      // Terminating resolves also for a thread that runs in circles.
      worker.terminate().then(() => resolve(answer), reject);
    };
    worker.once('message', end);
    worker.once('error', (error: Error & { code?: string }) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') return end({ problem: 'reading it takes too much memory' });
      clearTimeout(timer);
      reject(error);
    });
  });
}
