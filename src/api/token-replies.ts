import type { ServerResponse } from 'node:http';
import type { TokenHolder } from './context.ts';

/** Milliseconds between two looks at the tokens of open replies. */
const INTERVAL = 1_000;

/** Ends replies, such as event streams, whose token is revoked or expires while they are open. */
export interface TokenReplies {
  add(token: TokenHolder, reply: ServerResponse): void;
  /** Ends replies of invalid tokens; those that it has ended before and whose reader takes nothing are cut off. */
  check(): Promise<void>;
}

/** Looks every second while such a reply is open. */
export function createTokenReplies(interval = INTERVAL): TokenReplies {
  const open = new Map<ServerResponse, TokenHolder>();
  let timer: NodeJS.Timeout | undefined;

  function remove(reply: ServerResponse): void {
    open.delete(reply);
    if (open.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  async function check(): Promise<void> {
    // Only what has begun to stream: the result of a request that was accepted belongs to its client.
    const streaming = [...open].filter(([reply]) => reply.headersSent);
    for (const [reply, token] of streaming) {
      if (await token.isValid()) continue;
      if (reply.writableEnded) reply.destroy();
      else reply.end();
    }
  }

  return {
    add(token, reply) {
      open.set(reply, token);
      reply.once('close', () => remove(reply));
      // A stream may write once more before it learns that it was ended.
      reply.on('error', () => undefined);
      timer ??= setInterval(() => void check(), interval).unref();
    },
    check,
  };
}
