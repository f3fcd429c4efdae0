import { request } from 'node:https';
import { connect } from 'node:tls';
import { RdError } from '../../../errors.ts';
import type { Shell } from '../../shell.ts';
import type { Credentials } from './kubeconfig.ts';

interface ApiAnswer {
  status: number;
  text: string;
}

/** The API server of the cluster. */
export interface ApiClient {
  /** @throws RdError `ERR_NOT_READY` when it does not respond, or another server does in its place; `ERR_CANCELLED`. */
  get(path: string, signal: AbortSignal): Promise<ApiAnswer>;
}

const LIMIT_MS = 5_000;
const MAX_BYTES = 16 * 1024 * 1024;
const HOST = '127.0.0.1';

/** Connects as administrator; accepts only a server certificate of the cluster's own CA. */
export function apiClient(shell: Pick<Shell, 'dial'>, port: number, { ca, cert, key }: Credentials): ApiClient {
  return {
    async get(path, signal) {
      const late = AbortSignal.timeout(LIMIT_MS);
      const both = AbortSignal.any([signal, late]);
      try {
        const raw = await shell.dial(HOST, port, both);
        // Errors surface on the connection above.
        raw.on('error', () => undefined);
        const socket = connect({ socket: raw, host: HOST, ca, cert, key });
        try {
          return await new Promise<ApiAnswer>((resolve, reject) => {
            socket.once('error', reject);
            const options = { host: HOST, port, path, signal: both, createConnection: () => socket };
            const outgoing = request({ ...options, headers: { accept: 'application/json' } }, (answer) => {
              const chunks: Buffer[] = [];
              let size = 0;
              answer.on('data', (chunk: Buffer) => {
                size += chunk.length;
                if (size > MAX_BYTES) answer.destroy(new Error(`the answer is larger than ${MAX_BYTES} bytes`));
                else chunks.push(chunk);
              });
              answer.once('error', reject);
              answer.once('end', () =>
                resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
              );
              answer.once('close', () => reject(new Error('the answer broke off')));
            });
            outgoing.once('error', reject);
            outgoing.end();
          });
        } finally {
          socket.destroy();
          raw.destroy();
        }
      } catch (cause) {
        if (signal.aborted) throw new RdError('ERR_CANCELLED', 'asking the API server was cancelled', { cause });
        const text = cause instanceof Error ? cause.message : String(cause);
        const why = late.aborted ? `no answer within ${LIMIT_MS / 1000} s` : text;
        throw new RdError('ERR_NOT_READY', `the API server does not answer on port ${port}: ${why}`, { cause });
      }
    },
  };
}
