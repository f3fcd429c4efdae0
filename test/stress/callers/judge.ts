import type { OpenApiDocument, OpenApiOperation } from '../../../src/api/openapi.ts';
import { operationOf } from '../../wire/agreement.ts';
import type { RawReply } from '../../wire/raw.ts';
import type { Caller, Page, Standing } from './callers.ts';

/** A request as the judge sees it. */
export interface Asked {
  method: string;
  target: string;
  caller: Caller;
  page: Page;
  /** It is not valid HTTP, so that anything but success is an answer. */
  malformed: boolean;
}

const ORDER: readonly Standing[] = ['read', 'plan', 'write', 'full'];

/** Whether that caller may have what it asks for: nobody, by the described scopes, unless this says so. */
export function mayHave(document: OpenApiDocument, { method, target, caller, page }: Asked): boolean {
  const operation = operationOf(document, method, target);
  if (page.foreign || operation === undefined) return false;
  const least = leastOf(operation);
  return least === 'none' || (caller.standing !== 'none' && ORDER.indexOf(caller.standing) >= ORDER.indexOf(least));
}

/** Events have no end, so a caller who may have them waits. */
export function isEndless({ target }: Asked): boolean {
  return /\/v2\/events\/?(?:\?|$)/i.test(target);
}

/** What is wrong with the reply; undefined when nothing is. `secrets`: what only the owner of the service may see. */
export function misdeed(
  document: OpenApiDocument,
  asked: Asked,
  { status, headers, body }: RawReply,
  secrets: readonly string[],
): string | undefined {
  const all = `${JSON.stringify(headers)}\n${body}`;
  if (secrets.some((secret) => all.includes(secret))) return 'a secret is in the reply';
  if (Object.keys(headers).some((name) => name.startsWith('access-control-'))) return 'other pages may read the reply';
  if (status >= 500 && /ERR_INTERNAL|unexpected/i.test(body)) return `it is answered as a bug: ${status}`;
  // Says nothing, to anybody.
  if (asked.method === 'OPTIONS' && status === 204 && (body === '' || asked.malformed)) return undefined;
  if (mayHave(document, asked)) return !asked.malformed && status === 401 ? 'valid credentials are refused' : undefined;
  if (status < 400 || status >= 500) return `${status} for one who may not have it`;
  if (asked.malformed || operationOf(document, asked.method, asked.target) === undefined) return undefined;
  // Limits of the parser come before everything else.
  if (status === 417 || status === 431 || status === 400) return undefined;
  const expected = asked.page.foreign || asked.caller.standing !== 'none' ? 403 : 401;
  return status === expected ? undefined : `${status} instead of ${expected}`;
}

function leastOf({ security }: OpenApiOperation): Standing {
  if (security?.length === 0) return 'none';
  const scope = security?.flatMap(({ token = [] }) => token)[0];
  return ORDER.find((each) => each === scope) ?? 'full';
}
