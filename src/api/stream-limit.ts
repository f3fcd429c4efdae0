import type { ServerResponse } from 'node:http';
import { RdError } from '../errors.ts';

/** Open streams of one caller: each takes a connection, of which the service has a limited number. */
export const MOST_STREAMS = 128;

/** Counts the open streams of each caller: the name of a token, or undefined for full credentials. */
export function createStreamLimit() {
  const open = new Map<string | undefined, number>();
  /** Throws `ERR_TOO_MANY`. The stream counts until its connection is closed. */
  return function admit(caller: string | undefined, reply: Pick<ServerResponse, 'once'>): void {
    const own = open.get(caller) ?? 0;
    if (own >= MOST_STREAMS) {
      throw new RdError('ERR_TOO_MANY', `${own} event streams of this caller are open already`, {
        advice: 'Close some of them, or have their programs share one.',
      });
    }
    open.set(caller, own + 1);
    reply.once('close', () => {
      const left = (open.get(caller) ?? 1) - 1;
      if (left > 0) open.set(caller, left);
      else open.delete(caller);
    });
  };
}
