import fc from 'fast-check';
import { ENDPOINTS } from '../../../src/api/routes/listings.ts';
import { anyPayloadArbitrary } from '../../helpers/settings-arbitrary.ts';
import type { RawRequest } from '../raw.ts';

/** A request that is valid HTTP, or one that is not even that. */
export interface FuzzRequest extends RawRequest {
  /** Not valid HTTP: closing the connection without a response is allowed. */
  malformed: boolean;
}

/** What would end the service, which has tests of its own. */
const ENDING = /^\/v[01]\/(shutdown|factory_reset)\/?$/i;

const OWN = [
  '/v2/status',
  '/v2/plan',
  '/v2/openapi.json',
  '/v2/port_forwards',
  '/v2/settings/layers',
  '/v2/metrics',
  '/v2/history',
];
const PATHS = [
  '/',
  '/v0',
  '/v1',
  '/v0/settings',
  '/v0/snapshots',
  ...ENDPOINTS.map(({ name }) => `/v1/${name}`),
  ...OWN,
];

const name = () =>
  fc.constantFrom('id', 'name', 'category', 'checkID', 'namespace', 'service', 'k8sPort', '__proto__', 'a[]', '');
const value = () =>
  fc.oneof(
    fc.constantFrom(
      '',
      'x',
      'busybox',
      'example.invalid/a:b',
      '../../etc/passwd',
      '%00',
      '%',
      '%ff',
      '%2e%2e',
      '__proto__',
      '0',
      '65536',
      '-1',
      '1e9',
    ),
    fc.string({ maxLength: 30 }).map(encodeURIComponent),
  );
const query = () =>
  fc
    .array(fc.tuple(name(), value()), { maxLength: 4 })
    .map((pairs) => pairs.map(([key, text]) => `${key}=${text}`).join('&'));

const visible = () =>
  fc.string({ maxLength: 40, unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) });
const path = () =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...PATHS) },
    { weight: 1, arbitrary: fc.constantFrom(...PATHS).map((text) => text.toUpperCase()) },
    { weight: 1, arbitrary: fc.constantFrom(...PATHS).map((text) => `${text}/`) },
    { weight: 1, arbitrary: fc.constantFrom(...PATHS).map((text) => text.replace('/', '//')) },
    { weight: 1, arbitrary: fc.constantFrom(...PATHS).map((text) => `${text}%2f..%2f`) },
    { weight: 1, arbitrary: visible().map((text) => `/${text}`) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '*',
        'http://127.0.0.1/v1/about',
        '/v1/%',
        '/..',
        '/v1/../v1/about',
        `/${'x'.repeat(9000)}`,
      ),
    },
  );
const target = () =>
  fc.tuple(path(), fc.option(query())).map(([text, extra]) => (extra === null ? text : `${text}?${extra}`));

const method = () =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom('GET', 'PUT', 'POST', 'DELETE') },
    {
      weight: 1,
      arbitrary: fc.constantFrom('HEAD', 'OPTIONS', 'PATCH', 'TRACE', 'CONNECT', 'QUERY', 'PROPFIND', 'get', 'BREW'),
    },
  );

const printable = () =>
  fc.string({ maxLength: 60, unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });
const headers = () =>
  fc.record(
    {
      'Content-Type': fc.oneof(
        fc.constantFrom('application/json', 'text/plain; charset=utf-16', ';;;', 'multipart/form-data'),
        printable(),
      ),
      'Content-Encoding': fc.constantFrom('gzip', 'identity', 'x'),
      Accept: fc.constantFrom('*/*', 'text/html', ''),
      'If-Match': fc.constantFrom('*', '"x"', 'W/"x"', ',,,', ''),
      'If-None-Match': fc.constant('*'),
      Range: fc.constantFrom('bytes=0-1', 'x'),
      Origin: fc.constantFrom('null', 'http://127.0.0.1:1', 'http://localhost', '%%%'),
      Host: fc.constantFrom('127.0.0.1', 'localhost:1', 'evil.example', '[::1]', 'a b', ''),
      Authorization: fc.constantFrom(undefined, 'Basic', 'Basic !', 'Bearer x', 'basic dXNlcjo='),
      Expect: fc.constantFrom('100-continue', 'tea'),
      Cookie: printable(),
      Upgrade: fc.constantFrom('websocket', 'h2c'),
      'X-Forwarded-For': printable(),
      'X-Long': fc.constantFrom('x', 'y'.repeat(20_000)),
      'Transfer-Encoding': fc.constantFrom('chunked', 'gzip', 'chunked, chunked', 'x'),
    },
    { requiredKeys: [] },
  );

const EVIL = [
  '{"__proto__":{"version":19,"polluted":true}}',
  '{"version":19,"constructor":{"prototype":{"polluted":true}},"__proto__":null}',
  '{"version":19,"kubernetes":{"__proto__":{"port":1}}}',
  `${'['.repeat(50_000)}`,
  `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`,
  '{"version":1e400}',
  '{"version":19,"version":3}',
  '{"name":"\\ud800"}',
  '{"name":"--help","description":7}',
  '{"mode":"wipe "}',
  '{"vmState":{"toString":1}}',
  '{"namespace":"a","service":"b","k8sPort":99999,"hostPort":-1}',
  '{"namespace":{},"service":[],"k8sPort":null,"hostPort":"x"}',
  '{"settings":{"__proto__":{}},"state":"started","prune":["__proto__","x"]}',
  '{"preferences":{"navItem":{"currentTabs":{"__proto__":"general"}}}}',
  '\ufeff{"version":19}',
];
const body = (): fc.Arbitrary<string | Buffer | undefined> =>
  fc.oneof(
    fc.constant(undefined),
    fc.constantFrom('', 'null', '[]', '0', '""', 'true', '{}', '{', ...EVIL),
    fc.json({ maxDepth: 4 }),
    anyPayloadArbitrary().map((payload) => JSON.stringify(payload)),
    anyPayloadArbitrary().map((settings) => JSON.stringify({ settings, state: 'started', prune: [] })),
    fc.constantFrom('STARTED', 'STOPPED').map((vmState) => JSON.stringify({ vmState })),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  );

/** Requests of every kind, most of them close to something that is served. */
export function requestArbitrary(): fc.Arbitrary<FuzzRequest> {
  return fc
    .record({
      method: method(),
      target: target(),
      headers: fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: headers() }),
      body: body(),
    })
    .filter((request) => !ENDING.test(request.target.split('?', 1)[0] ?? ''))
    .map(({ body: sent, headers: extra, ...request }) => ({
      ...request,
      headers: extra,
      ...(sent === undefined ? {} : { body: sent }),
      // An unsupported transfer coding, or an upgrade that is not offered, makes it another message.
      malformed:
        ['CONNECT', 'get', 'BREW'].includes(request.method) ||
        'Transfer-Encoding' in extra ||
        'Upgrade' in extra ||
        ('Host' in extra && extra.Host === ''),
    }));
}
