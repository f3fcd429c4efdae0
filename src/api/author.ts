import type { IncomingHttpHeaders } from 'node:http';
import type { Author } from '../plan/history.ts';
import { PRODUCT } from '../product.ts';

/** Characters of a program's name that the history keeps. */
const MOST = 120;

/** The program behind a request, as it states itself: `rdctl/0.1.0`. */
export function programOf(headers: IncomingHttpHeaders): Pick<Author, 'program'> {
  const name = headers['user-agent'];
  return name === undefined || name === '' ? {} : { program: name.slice(0, MOST) };
}

/** The author of `PUT /v1/settings`: `set` of our own tool, or any other client. */
export function authorOfPut(headers: IncomingHttpHeaders): Author {
  const { program } = programOf(headers);
  const isOurs = program?.startsWith(`${PRODUCT.name}/`) === true;
  return { how: isOurs ? 'set' : 'api', ...(program === undefined ? {} : { program }) };
}
