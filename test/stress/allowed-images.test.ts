import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EngineCall } from '../../src/drivers/engines/authz-plugin.ts';
import { denial } from '../../src/drivers/engines/authz-plugin.ts';
import { pullPolicy } from '../../src/drivers/engines/pull-policy.ts';
import { registryRequest } from '../../src/drivers/engines/registry-request.ts';
import { callEngine } from '../helpers/engine-client.ts';
import { type HostInstance, pidOf } from '../helpers/host-instance.ts';
import { imageArchive } from '../helpers/image-archive.ts';
import type { LoopbackRegistry } from '../helpers/loopback-registry.ts';
import { exchange, type RawHead, rawRequest } from '../helpers/raw-request.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { type RestrictedMoby, restrictedMoby } from '../helpers/restricted-moby.ts';
import { rounds } from '../helpers/rounds.ts';

/** Mostly the usual value: with five oddities in one request, most would be refused for the first of them. */
function mostly<T>(usual: T, odd: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: odd });
}

const TYPES = ['application/x-www-form-urlencoded', 'application/json', 'application/x-tar', 'text/plain', '', 'a;b'];
const SCHEMES = ['x:', 'http:', 'HTTPS://', 'http://localhost', 'x://a@b:1', '//h', '/', '/.', '/x/..', '*', ''];
const VERSIONS = ['', '/v1.41', '/v1.24', '/v1.41/', '/v1..41', '/v1.41.0', '/V1.41', '/v1.41/v1.41', '/v99.9'];
const SIGNS = [
  '/',
  '//',
  '%2f',
  '%',
  ';',
  '#',
  '?',
  '&',
  '\\',
  '.',
  '/../',
  '%00',
  '%zz',
  '\u00ff',
  ' ',
  '+',
  '=',
  ':',
  '@',
];

/** Edits that turn a request into one that a lenient parser may still understand. */
const edit = fc.record({
  at: fc.nat(200),
  kind: fc.constantFrom('escape', 'case', 'insert', 'drop', 'none'),
  sign: fc.constantFrom(...SIGNS),
});
type Edit = { at: number; kind: string; sign: string };

function edited(text: string, edits: readonly Edit[]): string {
  let result = text;
  for (const { at, kind, sign } of edits) {
    const place = result.length === 0 ? 0 : at % result.length;
    const letter = result[place] ?? '';
    const changed = {
      escape: `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`,
      case: letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
      insert: `${sign}${letter}`,
      drop: '',
      none: letter,
    }[kind];
    result = `${result.slice(0, place)}${changed}${result.slice(place + 1)}`;
  }
  return result;
}

/** Requests for `HOST/evil:1` and `HOST/good:1` in all forms; no list here allows the first image. */
function requests(host: string): fc.Arbitrary<RawHead> {
  const query = (image: string) => `fromImage=${encodeURIComponent(`${host}/${image}`)}&tag=1`;
  const good = query('good');
  const evil = query('evil');
  const service = `{"TaskTemplate":{"ContainerSpec":{"Image":"${host}/evil:1"}}}`;
  const base = fc.constantFrom(
    { path: '/images/load', query: 'quiet=1', body: imageArchive(`${host}/evil:1`) },
    { path: '/images/create', query: `fromSrc=-&repo=${host}/evil&tag=1`, body: imageArchive('x:1') },
    { path: '/images/create', query: evil, body: Buffer.from('') },
    { path: '/images/create', query: `${evil}&${good}`, body: Buffer.from('') },
    { path: '/images/create', query: `${good}&${evil}`, body: Buffer.from('') },
    { path: '/images/create', query: `${good};${evil}`, body: Buffer.from('') },
    { path: '/images/create', query: good, body: Buffer.from(evil) },
    { path: '/images/create', query: good, body: Buffer.from(JSON.stringify({ fromImage: `${host}/evil`, tag: '1' })) },
    { path: '/images/create', query: '', body: Buffer.from(evil) },
    { path: '/plugins/pull', query: `remote=${host}/evil:1`, body: Buffer.from('[]') },
    { path: '/services/create', query: '', body: Buffer.from(service) },
  );
  return fc
    .record({
      base,
      method: mostly('POST', fc.constantFrom('PUT', 'post', 'PATCH', 'GET')),
      scheme: mostly('', fc.constantFrom(...SCHEMES)),
      version: mostly('/v1.41', fc.constantFrom(...VERSIONS)),
      edits: mostly<Edit[]>([], fc.array(edit, { minLength: 1, maxLength: 3 })),
      types: fc.array(fc.constantFrom(...TYPES), { maxLength: 3 }),
      framing: fc.constantFrom('length', 'length', 'chunks', 'both', 'none'),
      http: mostly('1.1', fc.constant('1.0')),
      upgrade: fc.boolean(),
    })
    .map(
      ({ base: { path, query: parameters, body }, method, scheme, version, edits, types, framing, http, upgrade }) => {
        const target = edited(`${scheme}${version}${path}?${parameters}`, edits).replace(/[\r\n]/g, '');
        const chunks = framing === 'chunks' || framing === 'both';
        const sized = framing === 'length' ? [`Content-Length: ${body.length}`] : [];
        const headers = [
          ...types.map((type) => `Content-Type: ${type}`),
          ...(framing === 'both' ? ['Content-Length: 0'] : sized),
          ...(chunks ? ['Transfer-Encoding: chunked'] : []),
          ...(upgrade ? ['Upgrade: h2c', 'X-HTTP-Method-Override: GET'] : []),
        ];
        const framed = Buffer.concat([
          Buffer.from(`${body.length.toString(16)}\r\n`),
          body,
          Buffer.from('\r\n0\r\n\r\n'),
        ]);
        return { method, target, headers, version: http, body: chunks ? framed : body };
      },
    );
}

/** What dockerd passes to its plugin: the last of several headers, and a body only when the first type is JSON. */
function asShown({ method = 'POST', target, headers = [], body = '' }: RawHead): EngineCall {
  const pairs = headers.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const);
  const chunked = pairs.some(([name]) => name === 'Transfer-Encoding');
  const shown = Object.fromEntries(
    pairs.filter(([name]) => name !== 'Transfer-Encoding' && !(chunked && name === 'Content-Length')),
  );
  const isShown = !chunked && pairs.find(([name]) => name === 'Content-Type')?.[1] === 'application/json';
  return { method, uri: target, headers: shown, ...(isShown ? { body: body.toString() } : {}) };
}

/** Whether some lenient parser could bring in another image than the allowed one: a superset of what dockerd would. */
function couldBringEvil({ method = 'POST', target, headers = [], body = '' }: RawHead): boolean {
  if (method.toUpperCase() !== 'POST') return false;
  const [before = '', ...after] = target.split('?');
  const path = lenient(before).replace(/^[a-z][a-z0-9+.-]*:/i, '');
  const place = /\/(images\/load|images\/create|plugins\/pull|services\/create)\/*$/.exec(path)?.[1];
  if (place === undefined) return false;
  if (place === 'images/load' || place === 'services/create') return true;
  // dockerd obeys the first of several types.
  const type = headers.find((line) => line.startsWith('Content-Type:')) ?? '';
  const form = /x-www-form/.test(type) ? body.toString() : '';
  const named = `${after.join('?')}&${form}`
    .split(/[&;]/)
    .map((pair) => pair.split(/=(.*)/s).map(lenient))
    .flatMap(([name = '', value = '']) => (/^(?:fromImage|remote)$/.test(name) ? [value] : []));
  return named.some((name) => name.includes('evil')) || (place === 'images/create' && named.join('') === '');
}

function lenient(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

describe('the decision about a request', () => {
  test('never allows what any parser could take for an image that is not allowed', () => {
    const policy = pullPolicy();
    policy.set(['reg.example/good:1']);
    let through = 0;
    fc.assert(
      fc.property(requests('reg.example'), (head) => {
        const why = denial(asShown(head), policy);
        if (why === undefined && !/^(?:GET|PUT)$/.test(head.method ?? '')) through += 1;
        expect(why === undefined && couldBringEvil(head)).toBe(false);
      }),
      { numRuns: rounds(20_000, 100_000) },
    );
    // A policy that denies everything would pass as well.
    expect(through).toBeGreaterThan(50);
  });

  test('never parses a registry path as another repository than a lenient server does', () => {
    const path = fc
      .record({
        before: fc.constantFrom('', '/', '/x/..', '/V2', '/x', '/.'),
        name: fc.constantFrom('good', 'evil', 'good/../evil', 'evil/good'),
        kind: fc.constantFrom('/manifests/1', `/blobs/sha256:${'a'.repeat(64)}`, '/tags/list', '/manifests/1/'),
        edits: fc.array(edit, { maxLength: 3 }),
      })
      .map(({ before, name, kind, edits }) => edited(`${before}/v2/${name}${kind}`, edits));
    const policy = pullPolicy();
    policy.set(['reg.example/good:1']);
    let through = 0;
    fc.assert(
      fc.property(path, (text) => {
        if (policy.refusal('reg.example', registryRequest('GET', text)) !== undefined) return;
        through += 1;
        expect(/(?:^|[/\\])v2[/\\].*evil.*[/\\]manifests[/\\;]/i.test(lenient(lenient(text)))).toBe(false);
      }),
      { numRuns: rounds(20_000, 100_000) },
    );
    expect(through).toBeGreaterThan(50);
  });
});

const reason = await whyNoRealEngine();

describe.skipIf(reason !== undefined)('a real dockerd', () => {
  let moby: RestrictedMoby;
  let registry: LoopbackRegistry;
  let instance: HostInstance;
  let endpoint: string;

  beforeAll(async () => {
    moby = await restrictedMoby('file');
    ({ registry, instance, endpoint } = moby);
  });
  afterAll(async () => expect(await moby?.close()).toEqual([]));

  test('has only allowed images after random requests, and still answers', async () => {
    const pid = await pidOf(instance.directory, 'dockerd');
    const allowed = [`${registry.host}/good:1`];
    let pulled = 0;
    let sent = 0;
    await fc.assert(
      fc.asyncProperty(requests(registry.host), async (head) => {
        sent += 1;
        await exchange(endpoint, rawRequest(head), 1_000);
        const { body } = await callEngine(endpoint, 'GET', '/images/json?all=1');
        const images: { Id: string; RepoTags: string[] | null }[] = JSON.parse(body.toString());
        for (const { Id, RepoTags } of images) {
          expect(RepoTags).toEqual(allowed);
          await callEngine(endpoint, 'DELETE', `/images/${Id}?force=1`);
          pulled += 1;
        }
      }),
      {
        numRuns: rounds(600, 10_000),
        // Shrinking needs a clean engine, which is gone once a counterexample was found.
        endOnFailure: true,
        interruptAfterTimeLimit: rounds(25_000, 3_000_000),
      },
    );
    process.stderr.write(`${sent} requests, ${pulled} pulls of the allowed image\n`);
    expect(pulled).toBeGreaterThan(0);
    expect(await pidOf(instance.directory, 'dockerd')).toBe(pid);
    expect((await callEngine(endpoint, 'GET', '/_ping')).status).toBe(200);
  });

  test('answers a hundred concurrent requests with long bodies in bounded memory', async () => {
    const body = Buffer.from(JSON.stringify({ x: 'x'.repeat(1024 * 1024 - 100) }));
    const target = '/containers/create';
    const headers = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    const request = rawRequest({ target, headers, body });
    const before = process.memoryUsage().rss;
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 5);
    const answers = await Promise.all(Array.from({ length: 100 }, () => exchange(endpoint, request, 60_000)));
    clearInterval(watch);
    // The plugin allows them; dockerd needs an image.
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 (?!403)[45]\d\d /);
    process.stderr.write(`100 bodies of 1 MiB: ${Math.round((most - before) / 2 ** 20)} MiB more\n`);
    expect(most - before).toBeLessThan(400 * 2 ** 20);
  });
});
