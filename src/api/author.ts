import type { FastifyRequest } from 'fastify';
import type { Author } from '../plan/history.ts';
import { LOSSES } from '../plan/losses.ts';
import { PRODUCT } from '../product.ts';

/** The schema of what a client may say about its apply. */
export const AUTHOR = {
  description: 'What the history says of this write, as the caller states it.',
  type: 'object',
  additionalProperties: false,
  properties: {
    profile: { description: 'Name of the profile.', type: 'string', maxLength: 256 },
    files: {
      type: 'array',
      maxItems: 100,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['path', 'sha256'],
        properties: {
          path: { type: 'string', maxLength: 4096 },
          sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
        },
      },
    },
    sources: {
      description: 'Where the files ask for the changes of the plan.',
      type: 'array',
      maxItems: 2000,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['path', 'file', 'line'],
        properties: {
          path: { description: 'Path of the change, as in the plan.', type: 'string', maxLength: 4096 },
          key: { type: 'string', maxLength: 4096 },
          file: { type: 'string', maxLength: 4096 },
          line: { type: 'integer', minimum: 1 },
        },
      },
    },
    to: { description: 'The generation that a rollback returns to.', type: 'integer', minimum: 0 },
    consent: {
      description: 'The losses of the plan that a person has consented to, and how.',
      type: 'object',
      additionalProperties: false,
      required: ['items', 'by'],
      properties: {
        items: { type: 'array', maxItems: LOSSES.length, items: { enum: LOSSES } },
        by: { enum: ['flag', 'prompt'] },
      },
    },
  },
} as const;

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

/** The author of a request to any other route: a client of the API. */
export function authorOf(request: FastifyRequest): Author {
  return { how: 'api', ...callerOf(request) };
}

/** The author of `PUT /v1/settings`: `set` of our own tool, or any other client. */
export function authorOfPut(request: FastifyRequest): Author {
  const caller = callerOf(request);
  const isOurs = caller.program?.startsWith(`${PRODUCT.name}/`) === true;
  return { how: isOurs ? 'set' : 'api', ...caller };
}
