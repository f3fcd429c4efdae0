import { Worker } from 'node:worker_threads';
import type { JsonValue } from '../../json.ts';
import { source } from './yaml-worker.ts?source';

/** Result of the worker: the document as JSON, or the error as a clause. */
export type Answer = { text: string } | { problem: string };

/** Milliseconds per document. A compose file takes about ten. */
const LIMIT_MS = 5_000;
/** Memory limit of the worker in MiB. The largest accepted document needs about a fifth of it. */
const HEAP = { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 32 };

/**
 * Parses untrusted YAML of at most 1 MiB, in a worker with a deadline: short texts can take a parser long, and must not block this process.
 * An error is returned as a clause.
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
      // Terminating resolves also for a thread in an infinite loop.
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
