import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callEngine } from '../helpers/engine-client.ts';
import { imageArchive } from '../helpers/image-archive.ts';
import type { LoopbackRegistry } from '../helpers/loopback-registry.ts';
import { exchange, type RawHead, rawRequest, statusOf } from '../helpers/raw-request.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { type RestrictedMoby, restrictedMoby } from '../helpers/restricted-moby.ts';

const reason = await whyNoRealEngine();

const FORM = 'Content-Type: application/x-www-form-urlencoded';
const JSON_TYPE = 'Content-Type: application/json';
const TAR = 'Content-Type: application/x-tar';

/** Requests that no client library sends, against a real dockerd. */
describe.skipIf(reason !== undefined)('requests that try to bypass the list of allowed images', () => {
  let moby: RestrictedMoby;
  let registry: LoopbackRegistry;
  let endpoint: string;

  beforeAll(async () => {
    moby = await restrictedMoby('busybox');
    ({ registry, endpoint } = moby);
  });
  afterAll(async () => expect(await moby?.close()).toEqual([]));

  /** Every image that was ever there. */
  const held: string[] = [];

  /** Images in the engine that the list does not allow; removes all images. */
  async function intruders(): Promise<string[]> {
    const { body } = await callEngine(endpoint, 'GET', '/images/json?all=1');
    const images: { Id: string; RepoTags: string[] | null }[] = JSON.parse(body.toString());
    held.push(...images.flatMap(({ RepoTags }) => RepoTags ?? []));
    for (const { Id } of images) await callEngine(endpoint, 'DELETE', `/images/${Id}?force=1`);
    return images.flatMap(({ RepoTags, Id }) => RepoTags ?? [Id]).filter((name) => name !== `${registry.host}/good:1`);
  }

  const good = () => `fromImage=${encodeURIComponent(`${registry.host}/good`)}&tag=1`;
  const evil = () => `fromImage=${encodeURIComponent(`${registry.host}/evil`)}&tag=1`;

  const sized = (text: string | Buffer) => `Content-Length: ${Buffer.byteLength(text)}`;
  const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  const load = (target: string, headers: string[] = [TAR]): RawHead => {
    const body = imageArchive(`${registry.host}/evil:1`);
    return { target, headers: [...headers, sized(body)], body };
  };

  const TARGETS: [string, () => RawHead][] = [
    ['no origin form: x:', () => load('x:/images/load')],
    ['no origin form: x: and a host', () => load('x://host/images/load')],
    ['no origin form: http without a host', () => load('http:/images/load')],
    ['no origin form: absolute form', () => load('http://localhost/images/load')],
    ['no origin form: other letters', () => load('HTTPS://localhost/v1.41/images/load')],
    ['no origin form: opaque', () => load('x:images/load')],
    ['no origin form: user and port', () => load('http://a:b@localhost:80/images/load')],
    ['no origin form: asterisk', () => load('*')],
    ['no origin form: no slash', () => load('images/load')],
    ['two slashes', () => load('//images/load')],
    ['two slashes after the version', () => load('/v1.41//images/load')],
    ['two slashes inside', () => load('/images//load')],
    ['dot segments', () => load('/images/../images/./load')],
    ['escaped dot segments', () => load('/x/%2e%2e/images/load')],
    ['an escaped letter', () => load('/%69mages/load')],
    ['an escaped slash', () => load('/images%2Fload')],
    ['a final slash', () => load('/images/load/')],
    ['an odd version', () => load('/v1.41.0/images/load')],
    ['dots for a version', () => load('/v../images/load')],
    ['a fragment', () => load('/images/load#')],
    ['a backslash', () => load('/images\\load')],
    ['semicolons', () => load('/images/load;x')],
    ['a pull by no origin form', () => ({ target: `x:/images/create?${evil()}`, headers: ['Content-Length: 0'] })],
    ['lower case method', () => ({ ...load('/images/load'), method: 'post' })],
    ['method PUT', () => ({ ...load('/images/load'), method: 'PUT' })],
    ['method override', () => load('/images/load', [TAR, 'X-HTTP-Method-Override: GET'])],
    ['HTTP/1.0', () => ({ ...load('/images/load'), version: '1.0' })],
    ['upgrade to h2c', () => load('/images/load', [TAR, 'Connection: Upgrade', 'Upgrade: h2c'])],
  ];

  const form = (headers: string[], body = evil()): RawHead => ({
    target: `/images/create?${good()}`,
    headers: [...headers, sized(body)],
    body,
  });
  const BODIES: [string, () => RawHead][] = [
    ['a form', () => form([FORM])],
    ['a form before JSON', () => form([FORM, JSON_TYPE])],
    ['a form after JSON', () => form([JSON_TYPE, FORM])],
    ['a form before plain text', () => form([FORM, 'Content-Type: text/plain'])],
    ['a form before an empty type', () => form([FORM, 'Content-Type:'])],
    ['a form in capital letters', () => form(['CONTENT-TYPE: APPLICATION/X-WWW-FORM-URLENCODED', JSON_TYPE])],
    ['a form with a wrong parameter', () => form([`${FORM}; a`, JSON_TYPE])],
    [
      'a form in chunks before JSON',
      () => ({
        target: `/images/create?${good()}`,
        headers: [FORM, JSON_TYPE, 'Transfer-Encoding: chunked'],
        body: chunked(evil()),
      }),
    ],
    [
      'a form in chunks and a length',
      () => ({
        target: `/images/create?${good()}`,
        headers: [FORM, JSON_TYPE, 'Content-Length: 0', 'Transfer-Encoding: chunked'],
        body: chunked(evil()),
      }),
    ],
    [
      'a multipart form',
      () =>
        form(
          ['Content-Type: multipart/form-data; boundary=x', JSON_TYPE],
          `--x\r\nContent-Disposition: form-data; name="fromImage"\r\n\r\n${registry.host}/evil:1\r\n--x--\r\n`,
        ),
    ],
    ['two images, the second allowed', () => ({ target: `/images/create?${evil()}&${good()}` })],
    ['two images, the first allowed', () => ({ target: `/images/create?${good()}&${evil()}` })],
    ['a semicolon', () => ({ target: `/images/create?${good()};${evil()}` })],
    ['a semicolon before', () => ({ target: `/images/create?x=1;${evil()}&${good()}` })],
    ['an import instead', () => ({ target: `/images/create?fromImage=&fromSrc=-&repo=${registry.host}/evil` })],
  ];

  const service = (body: string): RawHead => ({
    target: '/services/create',
    headers: [JSON_TYPE, sized(body)],
    body,
  });
  const OTHERS: [string, () => RawHead][] = [
    ['a service', () => service('{"TaskTemplate":{"ContainerSpec":{"Image":"evil"}}}')],
    ['a service that is too long', () => service(`{"x":"${'x'.repeat(2 << 20)}"}`)],
    ['a swarm of others', () => ({ target: '/swarm/join', headers: [JSON_TYPE, sized('{}')], body: '{}' })],
    ['a plugin from a form', () => ({ ...form([FORM, JSON_TYPE]), target: '/plugins/pull?remote=evil' })],
  ];

  test.each(OTHERS)('%s is denied', async (_name, make) => {
    const answer = await exchange(endpoint, rawRequest(make()));
    expect(answer).toMatch(/^HTTP\/1\.1 403 [\s\S]*authorization denied by plugin/);
  });

  const PULLS: [string, () => RawHead][] = [
    [
      'docker',
      () => ({ target: `/v1.41/images/create?${good()}`, headers: ['Content-Type: text/plain', 'Content-Length: 0'] }),
    ],
    ['curl -X POST', () => ({ target: `/images/create?${good()}` })],
    [
      'dockerode',
      () => ({ target: `/images/create?${good()}`, headers: [JSON_TYPE, sized('{"tag":"1"}')], body: '{"tag":"1"}' }),
    ],
  ];

  test.each(PULLS)('a pull of %s brings in allowed images', async (_client, make) => {
    expect(statusOf(await exchange(endpoint, rawRequest(make())))).toBe(200);
    expect(await intruders()).toEqual([]);
    expect(held.splice(0)).toContain(`${registry.host}/good:1`);
  });

  test.each([...TARGETS, ...BODIES])('%s brings in no image', async (_name, make) => {
    const answer = await exchange(endpoint, rawRequest(make()));
    expect(await intruders(), answer.slice(0, 300)).toEqual([]);
  });
});
