import { createReadStream } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';

export interface MobyCall {
  method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  path: string;
  /** Sent as JSON. */
  body?: object;
  /** A file of this host, sent as is instead. */
  file?: string;
  /** Inactivity timeout in milliseconds; default one minute. */
  silenceMs?: number;
}

const SILENCE_MS = 60_000;
const MAX_BODY = 16 * 1024 * 1024;

/**
 * One request to dockerd over its socket. The response is a stream that must be read or destroyed.
 * @throws RdError `ERR_DRIVER_FAILED` without a response; `ERR_CANCELLED` when the signal aborts.
 */
export function callMoby(socketPath: string, call: MobyCall, signal: AbortSignal): Promise<IncomingMessage> {
  const { method, path, body, file, silenceMs = SILENCE_MS } = call;
  return new Promise((resolve, reject) => {
    const type = file === undefined ? 'application/json' : 'application/octet-stream';
    const headers = { host: 'localhost', 'content-type': type };
    const outgoing = request({ socketPath, method, path, headers, signal, agent: false }, resolve);
    outgoing.setTimeout(silenceMs, () => outgoing.destroy(new Error(`silent for ${silenceMs / 1000} s`)));
    outgoing.on('error', (cause) => {
      if (signal.aborted) reject(new RdError('ERR_CANCELLED', `the request to ${socketPath} was cancelled`, { cause }));
      else
        reject(
          new RdError('ERR_DRIVER_FAILED', `dockerd did not answer on ${socketPath}: ${cause.message}`, { cause }),
        );
    });
    if (file === undefined) return void outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    const source = createReadStream(file);
    source.on('error', (cause) => outgoing.destroy(cause));
    outgoing.on('close', () => source.destroy());
    source.pipe(outgoing);
  });
}

/** The whole response as text. Throws `ERR_DRIVER_FAILED` when it is truncated or too long. */
export async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of answer) {
      const bytes: Buffer = chunk;
      size += bytes.length;
      if (size > MAX_BODY) throw new Error(`the answer is larger than ${MAX_BODY} bytes`);
      chunks.push(bytes);
    }
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new RdError('ERR_DRIVER_FAILED', `dockerd broke off an answer: ${text}`, { cause });
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Sends a request and reads the response; `undefined` for a 404.
 * @throws RdError `ERR_FORBIDDEN` for a 403 and `ERR_DRIVER_FAILED` for other refusals, with dockerd's message.
 */
export async function askMoby(socket: string, call: MobyCall, signal: AbortSignal): Promise<unknown> {
  const answer = await callMoby(socket, call, signal);
  const status = answer.statusCode ?? 0;
  const text = await textOf(answer);
  if (status === 404) return undefined;
  if (status >= 300 && status !== 304) throw mobyRefusal(status, text);
  return jsonOf(text);
}

/** The message in `{"message":"…"}`. */
export function mobyRefusal(status: number, text: string): RdError {
  const value = jsonOf(text);
  const message = isObject(value) && typeof value.message === 'string' ? value.message : `status ${status}`;
  const code = status === 403 ? 'ERR_FORBIDDEN' : status === 404 ? 'ERR_NOT_FOUND' : 'ERR_DRIVER_FAILED';
  return new RdError(code, `dockerd refused: ${message.trim()}`);
}

function jsonOf(text: string): unknown {
  try {
    return text.trim() === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
