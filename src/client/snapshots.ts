import { RdError } from '../errors.ts';
import type { SnapshotRecord } from '../features/snapshots/contract.ts';
import { isObject, parseJson } from '../json.ts';
import type { Server } from './contract.ts';
import { isWebPage, notOurService, unauthorizedError } from './replies.ts';

/** Milliseconds that a copy may take: terabytes are slow, and the user can cancel. */
const LIMIT_MS = 24 * 3_600_000;

export type SnapshotCalls = ReturnType<typeof snapshotCalls>;

/**
 * Returns the snapshot calls of a service, ours or Rancher Desktop's; docs/snapshots.md describes them. Every method throws `ERR_SNAPSHOT` with the
 * service's message.
 */
export function snapshotCalls(client: Server) {
  async function call(method: string, path: string, body?: object, signal?: AbortSignal): Promise<string> {
    const response = await client.request({
      method,
      path,
      timeoutMs: LIMIT_MS,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
    const text = response.body.toString().trim();
    if (isWebPage(response)) throw notOurService(client.connection, `its response to ${method} ${path} is a web page`);
    if (response.status >= 200 && response.status < 300) return text;
    if (response.status === 401) throw unauthorizedError(client.connection, response);
    if (response.status === 404) throw new RdError('ERR_SNAPSHOT', 'the service has no snapshots');
    throw new RdError('ERR_SNAPSHOT', text === '' ? `${response.status} ${response.statusText}` : text);
  }
  return {
    async list(signal: AbortSignal): Promise<SnapshotRecord[]> {
      const records = recordsIn(await call('GET', '/v1/snapshots', undefined, signal));
      if (records) return records;
      throw notOurService(client.connection, '/v1/snapshots returned no list');
    },
    /** Creates a snapshot. `stop` stops the backend even if it could keep running; applications that always stop it ignore this. */
    create: (name: string, description: string, { stop = false } = {}) =>
      call('POST', '/v1/snapshots', { name, description, ...(stop ? { stop } : {}) }),
    remove: (name: string) => call('DELETE', `/v1/snapshots?name=${encodeURIComponent(name)}`),
    /** Restores a snapshot. `foreign` also permits one that another home made. */
    restore: (name: string, { foreign = false } = {}) =>
      call('POST', `/v1/snapshot/restore?name=${encodeURIComponent(name)}${foreign ? '&foreign=true' : ''}`),
    /** Cancels the operation. Resolves once it has been rolled back. */
    cancel: () => call('POST', '/v1/snapshots/cancel'),
  };
}

function recordsIn(text: string): SnapshotRecord[] | undefined {
  const value = parseJson(text);
  if (!Array.isArray(value)) return undefined;
  return value.flatMap((record) => {
    if (!isObject(record) || typeof record.created !== 'string' || typeof record.name !== 'string') return [];
    const { created, name, description, foreign } = record;
    const text = typeof description === 'string' ? description : '';
    return [{ created, name, description: text, ...(foreign === true ? { foreign } : {}) }];
  });
}
