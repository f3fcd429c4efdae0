import type { Row } from '../row.ts';

const LIMIT = 4 * 1024 * 1024;
/** One byte more than a body may have. */
const TOO_LONG = Buffer.alloc(LIMIT + 1, ' ');

/** The response of an endpoint to invalid bodies (api facts, 8); always 400 except for an oversized one. */
export interface BodyAnswers {
  /** Absent where a body is optional. */
  empty?: string;
  notJson: string;
  null?: string;
  /** A number, a string, a boolean. */
  scalar?: string;
  array?: string;
}

/** The rows of the table of body problems for one endpoint. An oversized body gets 413 everywhere (19.5). */
export function bodyRows(request: string, answers: BodyAnswers): Row[] {
  const row = (when: string, body: string | Buffer, reply: string | undefined): Row[] =>
    reply === undefined ? [] : [{ request, when, fact: 'api 8', body, status: 400, type: 'text', reply }];
  return [
    {
      request,
      when: 'body too long',
      fact: 'api 8; 19.5',
      body: TOO_LONG,
      status: 413,
      type: 'text',
      reply: `request body is too long, request body size exceeds ${LIMIT}`,
    },
    ...row('no body', '', answers.empty),
    ...row('cut off', '{"version":19', answers.notJson),
    ...row('not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), answers.notJson),
    ...row('null', 'null', answers.null),
    ...row('a number', '17', answers.scalar),
    ...row('a string', '"x"', answers.scalar),
    ...row('a boolean', 'true', answers.scalar),
    ...row('an array', '[418,"x"]', answers.array),
    ...row('an empty array', '[]', answers.array),
  ];
}
