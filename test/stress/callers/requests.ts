import fc from 'fast-check';
import type { OpenApiDocument } from '../../../src/api/openapi.ts';
import type { Connection } from '../../../src/client/connection.ts';
import { type FuzzRequest, requestArbitrary } from '../../wire/fuzz/request-arbitrary.ts';
import { callerArbitrary, pageArbitrary, type Tokens } from './callers.ts';
import type { Asked } from './judge.ts';

const NONCE = `/v2/proof?nonce=${'0a'.repeat(16)}`;

const SPELLINGS: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => path,
  (path) => path.toUpperCase(),
  (path) => `${path}/`,
  (path) => `${path}?x=1`,
  (path) => `http://127.0.0.1${path}`,
  (path) => path.replace(/.$/, (end) => `%${end.charCodeAt(0).toString(16)}`),
  (path) => `/${path}`,
  (path) => `${path}/../status`,
];

/** Any request, by any caller, from any page; mostly for a described endpoint with its own method, which is rarely met by chance. */
export function askedArbitrary(
  to: Connection,
  tokens: Tokens,
  document: OpenApiDocument,
): fc.Arbitrary<Asked & FuzzRequest> {
  const usual = { Host: `127.0.0.1:${to.port}`, Origin: undefined, Authorization: undefined };
  return fc
    .record({
      request: fc.oneof({ weight: 1, arbitrary: requestArbitrary() }, { weight: 3, arbitrary: described(document) }),
      caller: callerArbitrary(to, tokens),
      page: pageArbitrary(to),
    })
    .map(({ request, caller, page }) => ({
      ...request,
      caller,
      page,
      headers: { ...request.headers, ...usual, ...caller.headers, ...page.headers },
    }));
}

function described({ paths }: OpenApiDocument): fc.Arbitrary<FuzzRequest> {
  const routes = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => ({ method: method.toUpperCase(), target: path })),
  );
  return fc
    .record({
      route: fc.oneof(
        { weight: 20, arbitrary: fc.constantFrom(...routes) },
        { weight: 1, arbitrary: fc.constant({ method: 'GET', target: NONCE }) },
      ),
      spelled: fc.constantFrom(...SPELLINGS),
      request: requestArbitrary(),
    })
    .map(({ route: { method, target }, spelled, request: { body } }) => ({
      method,
      target: spelled(target),
      malformed: false,
      ...(body === undefined ? {} : { body }),
    }));
}
