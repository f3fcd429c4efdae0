import type { FastifyRequest } from 'fastify';
import type { Author } from '../plan/history.ts';
import { PRODUCT } from '../product.ts';

/** Characters of a program's name that the history keeps. */
const MOST = 120;

/** Who sent a request: the token that it was sent with, and the program as it states itself, such as `rdctl/0.1.0`. */
export function callerOf({ headers, token }: FastifyRequest): Pick<Author, 'token' | 'program'> {
  const program = headers['user-agent'];
  return {
    ...(token === undefined ? {} : { token: token.name }),
    ...(program === undefined || program === '' ? {} : { program: program.slice(0, MOST) }),
  };
}

/** Returns the author of a request to any route but `PUT /v1/settings`: a client of the API. */
export function authorOf(request: FastifyRequest): Author {
  return { how: 'api', ...callerOf(request) };
}

/** Returns the author of `PUT /v1/settings`: `set` of our own tool, or any other client of the API. */
export function authorOfPut(request: FastifyRequest): Author {
  const caller = callerOf(request);
  const isOurs = caller.program?.startsWith(`${PRODUCT.name}/`) === true;
  return { how: isOurs ? 'set' : 'api', ...caller };
}
