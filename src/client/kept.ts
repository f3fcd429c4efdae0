import type { Client } from './client.ts';
import { refusal } from './replies.ts';

/** Ends the keeping of a profile. Throws `ERR_NOT_FOUND` where none of that name is kept. */
export async function releaseKept(client: Pick<Client, 'connection' | 'request'>, name: string): Promise<void> {
  const request = { method: 'DELETE', path: `/v2/kept?${new URLSearchParams({ name })}` };
  const response = await client.request(request);
  if (response.status < 200 || response.status >= 300) throw refusal(client.connection, request, response);
}
