import { parentPort, workerData } from 'node:worker_threads';
import { parseDocument } from '../../settings/parse.ts';
import type { Answer } from './staging.ts';

// The worker thread that `foreign-yaml.ts` starts for one document.

/** Maximum length of the document as JSON: aliases can expand it. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

function answer(bytes: Uint8Array): Answer {
  const { value, findings } = parseDocument(bytes, '');
  const [first] = findings;
  if (first) {
    const { line, column, message } = first;
    return { problem: line === undefined ? message : `${message} (line ${line}, column ${column})` };
  }
  const text = JSON.stringify(value);
  if (text.length > MAX_CHARACTERS) return { problem: 'its aliases make it too large' };
  return { text };
}

parentPort?.postMessage(answer(workerData));
