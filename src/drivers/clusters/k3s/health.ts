import { RdError } from '../../../errors.ts';
import { isObject } from '../../../json.ts';
import type { ApiClient } from './api.ts';

/** `waiting` names what is missing, as a clause. */
export type Health = { ready: true } | { ready: false; waiting: string };

/**
 * Whether the API server is ready and every node is.
 * @throws RdError `ERR_CANCELLED`.
 */
export async function clusterHealth(api: ApiClient, signal: AbortSignal): Promise<Health> {
  try {
    const ready = await api.get('/readyz', signal);
    if (ready.status !== 200) return { ready: false, waiting: `the API server says ${ready.status} to /readyz` };
    const nodes = await api.get('/api/v1/nodes', signal);
    if (nodes.status !== 200) return { ready: false, waiting: `the API server says ${nodes.status} about its nodes` };
    return nodesHealth(nodes.text);
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_NOT_READY') return { ready: false, waiting: error.message };
    throw error;
  }
}

/** Of a NodeList. */
export function nodesHealth(text: string): Health {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return { ready: false, waiting: 'the API server gave a list of nodes that is none' };
  }
  const nodes = isObject(list) && Array.isArray(list.items) ? list.items : [];
  if (nodes.length === 0) return { ready: false, waiting: 'no node has joined' };
  for (const node of nodes) {
    const status = isObject(node) && isObject(node.status) ? node.status : {};
    const conditions = Array.isArray(status.conditions) ? status.conditions : [];
    const ready = conditions.find((condition) => isObject(condition) && condition.type === 'Ready');
    if (isObject(ready) && ready.status === 'True') continue;
    const why = isObject(ready) && typeof ready.message === 'string' ? `: ${ready.message.slice(0, 300)}` : '';
    return { ready: false, waiting: `the node is not ready${why}` };
  }
  return { ready: true };
}
