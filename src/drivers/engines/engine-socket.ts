import { request } from 'node:http';
import { RdError } from '../../errors.ts';

export interface SocketAnswer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: string;
}

const MAX_BODY = 4 * 1024 * 1024;

/**
 * `GET` over a unix socket.
 * @throws RdError `ERR_CONNECTION` without a timely response; `ERR_CANCELLED` when the signal aborts.
 */
export function getOverSocket(
  socketPath: string,
  path: string,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<SocketAnswer> {
  const { timeoutMs, signal } = options;
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path, signal, headers: { host: 'localhost' }, agent: false });
    const timer = setTimeout(() => call.destroy(new Error(`nothing within ${timeoutMs / 1000} s`)), timeoutMs);
    const fail = (cause: Error) => {
      clearTimeout(timer);
      if (signal.aborted) reject(new RdError('ERR_CANCELLED', `the request to ${socketPath} was cancelled`, { cause }));
      else reject(new RdError('ERR_CONNECTION', `${socketPath} did not answer: ${cause.message}`, { cause }));
    };
    call.on('error', fail);
    call.on('response', (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_BODY) response.destroy(new Error(`the answer is larger than ${MAX_BODY} bytes`));
        else chunks.push(chunk);
      });
      response.on('error', fail);
      response.on('end', () => {
        clearTimeout(timer);
        const body = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      });
    });
    call.end();
  });
}
