import { describe, expect, test } from 'vitest';
import type { EngineCall } from '../../src/drivers/engines/authz-plugin.ts';
import { denial, parseEngineCall } from '../../src/drivers/engines/authz-plugin.ts';
import { digestsOfIndex, learnedDigests, pullPolicy } from '../../src/drivers/engines/pull-policy.ts';
import { registryRequest } from '../../src/drivers/engines/registry-request.ts';

const D = `sha256:${'a'.repeat(64)}`;

function post(uri: string, more: Partial<EngineCall> = {}): EngineCall {
  return { method: 'POST', uri, headers: {}, ...more };
}

function imagesOf(call: EngineCall): unknown {
  const asked = parseEngineCall(call);
  return asked.brings === 'images' ? asked.references : asked.brings;
}

const BUSYBOX = { registry: 'docker.io', repository: 'library/busybox' };

describe('images that a request to dockerd would bring in', () => {
  test.each([
    ['/images/create?fromImage=busybox&tag=1', [{ ...BUSYBOX, tag: '1' }]],
    ['/v1.41/images/create?fromImage=docker.io/library/busybox:1', [{ ...BUSYBOX, tag: '1' }]],
    ['/v1.41/images/create?fromImage=busybox', [BUSYBOX]],
    ['/images/create?fromImage=busybox%3A&tag=', [BUSYBOX]],
    ['/images/create?fromImage=busybox:1&tag=2', [{ ...BUSYBOX, tag: '2' }]],
    [`/images/create?fromImage=busybox&tag=${D}`, [{ ...BUSYBOX, digest: D }]],
    [`/images/create?fromImage=busybox@${D}&tag=1`, [{ ...BUSYBOX, tag: '1', digest: D }]],
    ['/plugins/pull?remote=vieux/sshfs&name=x', [{ registry: 'docker.io', repository: 'vieux/sshfs', tag: 'latest' }]],
    ['/plugins/my/plugin/upgrade?remote=a.b/c:1', [{ registry: 'a.b', repository: 'c', tag: '1' }]],
    ['/images/create?fromSrc=-&repo=busybox', 'anything'],
    ['/images/create?fromImage=&fromSrc=-', 'anything'],
    ['/images/load?quiet=1', 'anything'],
    ['/v1.41/plugins/create?name=x', 'anything'],
    ['/swarm/init', 'anything'],
    ['/v1.41/swarm/join', 'anything'],
    ['/services/create', 'anything'],
    ['/v1.41/services/abc/update?version=3', 'anything'],
    ['/nodes/abc/update', 'anything'],
    ['/swarm/leave?force=1', 'nothing'],
    ['/images/create?fromImage=Not%20A%20Name', 'unknown'],
    ['/images/create?fromImage=busybox&tag=Not%20A%20Tag', 'unknown'],
    [`/images/create?fromImage=busybox&tag=${D.toUpperCase()}`, 'unknown'],
    ['/plugins/pull', 'unknown'],
    ['/containers/create?name=images/create', 'nothing'],
    ['/build?t=x&t=y', 'nothing'],
    ['/images/busybox/push', 'nothing'],
    ['/v1.41/images/ghcr.io%2Fx%3A1/push', 'nothing'],
    ['/images/create/push', 'nothing'],
    ['/images/busybox/tag?repo=x', 'nothing'],
    ['/commit?repo=x', 'nothing'],
    ['/v1.41/containers/a/b/exec', 'nothing'],
    ['/session', 'nothing'],
    ['/grpc', 'nothing'],
  ])('POST %s', (uri, brings) => {
    expect(imagesOf(post(uri))).toEqual(brings);
  });

  // dockerd parses most of these like one of the requests above, and the others not at all.
  test.each([
    'x:/images/load',
    'x://host/images/load',
    'x:images/load',
    'http:/images/load',
    'http://docker/v1.41/images/create?fromImage=busybox',
    '//images/load',
    '/v1.41//images/load',
    '/images//load',
    '/images/./load',
    '/x/../images/load',
    '/x/%2e%2e/images/load',
    '/images/x%2f..%2fload',
    '/images/load/',
    '/images/load%2F',
    '/images%2Fload',
    '/%69mages/load',
    '/v1.41/%69mages%2fcreate?fromImage=busybox',
    '/images/load%0A',
    '/images/load%00',
    '/images/load%zz',
    '/images/load%ff',
    '/images/load;x',
    '/images/load#',
    '/images\\load',
    '/images/load ',
    '/Images/Load',
    '/images/\u017foad',
    '/v1.41.0/images/load',
    '/v1/images/load',
    '/v../images/load',
    '/v1.41/v1.41/images/load',
    'images/load',
    '*',
    '',
    '/',
    '/images/sideload',
    '/images/create?fromImage=busybox&fromImage=ghcr.io/x&tag=1',
    '/images/create?fromImage=busybox&%66romImage=ghcr.io/x',
    '/images/create?fromImage=busybox;fromImage=ghcr.io/x',
    '/images/create?fromImage=busybox&x=%zz',
    '/images/create?fromImage=busybox&x=%ff',
    '/images/create?fromImage=busybox#x',
    '/images/create?fromImage=busybox\u00e4',
    '/plugins/pull?remote=vieux/sshfs&remote=evil/x',
    '/plugins/my%2Fplugin/upgrade?remote=a.b/c:1',
  ])('POST %j is not parsed', (uri) => {
    expect(parseEngineCall(post(uri))).toMatchObject({ brings: 'unknown' });
  });

  test.each(['post', 'Post', 'PUT', 'PATCH', 'TRACE', 'CONNECT', 'PRI', 'X', ''])(
    'method %j is not parsed',
    (method) => {
      expect(parseEngineCall(post('/images/load', { method }))).toMatchObject({ brings: 'unknown' });
    },
  );

  test('files and volumes are uploads, and nothing else', () => {
    expect(parseEngineCall(post('/containers/x/archive?path=/', { method: 'PUT' }))).toEqual({ brings: 'nothing' });
    expect(parseEngineCall(post('/v1.42/volumes/x', { method: 'PUT' }))).toEqual({ brings: 'nothing' });
  });

  test('GET, HEAD, OPTIONS and DELETE bring in nothing', () => {
    for (const method of ['GET', 'HEAD', 'DELETE']) {
      expect(parseEngineCall(post('/images/create?fromImage=x', { method }))).toEqual({ brings: 'nothing' });
    }
  });

  test.each<[Record<string, string>, string?]>([
    [{ 'Content-Type': 'application/x-www-form-urlencoded' }],
    [{ 'content-type': ' Application/X-WWW-Form-Urlencoded; charset=utf-8', 'content-length': '9' }],
    // dockerd reports the last of two types and obeys the first.
    [{ 'Content-Type': 'application/json', 'Content-Length': '9' }],
    [{ 'Content-Type': 'application/json' }, ''],
    [{ 'Content-Type': 'text/plain', 'Content-Length': '00' }],
    [{ 'Content-Type': '' }],
  ])('with %j a form could contradict the query', (headers, body) => {
    for (const uri of ['/images/create?fromImage=busybox&tag=1', '/plugins/pull?remote=busybox']) {
      const call = post(uri, { headers, ...(body === undefined ? {} : { body }) });
      expect(parseEngineCall(call)).toMatchObject({ brings: 'unknown', why: expect.stringContaining('form') });
    }
  });

  test.each<[string, Partial<EngineCall>]>([
    ['docker', { headers: { 'Content-Type': 'text/plain', 'Content-Length': '0' } }],
    ['curl -X POST', { headers: { 'User-Agent': 'curl' } }],
    ['dockerode', { headers: { 'Content-Type': 'application/json', 'Content-Length': '2' }, body: '{}' }],
  ])('a pull of %s is parsed', (_client, more) => {
    expect(imagesOf(post('/v1.41/images/create?fromImage=busybox&tag=1', more))).toEqual([{ ...BUSYBOX, tag: '1' }]);
  });

  test('an archive is treated as one, whatever its content type', () => {
    const tar = { headers: { 'Content-Type': 'application/x-tar', 'Content-Length': '9' } };
    for (const uri of ['/images/load', '/images/create?fromSrc=-', '/plugins/create']) {
      expect(parseEngineCall(post(uri, tar))).toMatchObject({ brings: 'anything' });
    }
  });
});

describe('the decision of the plugin', () => {
  const policy = pullPolicy();

  test('denies everything before there is a list, and archives unless every image is allowed', () => {
    expect(denial(post('/images/create?fromImage=busybox&tag=1'), policy)).toContain('is empty');
    policy.set(['busybox', 'ghcr.io']);
    expect(denial(post('/images/create?fromImage=busybox&tag=1'), policy)).toBeUndefined();
    expect(denial(post('/images/create?fromImage=alpine&tag=1'), policy)).toMatch(
      /^docker\.io\/library\/alpine:1 is not/,
    );
    expect(denial(post('/images/create?fromImage=alpine'), policy)).toMatch(
      /^all tags of docker\.io\/library\/alpine is/,
    );
    expect(denial(post('/images/load'), policy)).toMatch(/^loading an archive of images can bring in any image/);
    expect(denial(post('/containers/json', { method: 'GET' }), policy)).toBeUndefined();
    expect(denial(undefined, policy)).toContain('could not be parsed');
    policy.set(['*']);
    for (const uri of ['/images/load', 'x:/images/load', '/not/known']) {
      expect(denial(post(uri), policy)).toBeUndefined();
    }
  });
});

describe('requests to a registry', () => {
  test.each([
    ['GET', '/v2/team/app/manifests/1', { wants: 'manifest', repository: 'team/app', tag: '1' }],
    ['HEAD', '/v2/app/manifests/latest', { wants: 'manifest', repository: 'app', tag: 'latest' }],
    ['GET', `/v2/app/manifests/${D}`, { wants: 'manifest', repository: 'app', digest: D }],
    ['GET', '/v2/manifests/manifests/manifests', { wants: 'manifest', repository: 'manifests', tag: 'manifests' }],
    ['GET', `/v2/app/blobs/${D}`, { wants: 'content', repository: 'app' }],
    ['GET', `/v2/app/referrers/${D}`, { wants: 'content', repository: 'app' }],
    ['GET', '/v2/app/tags/list', { wants: 'content', repository: 'app' }],
    ['HEAD', `/v2/app/blobs/${D}`, { wants: 'other' }],
    ['PUT', '/v2/app/manifests/1', { wants: 'other' }],
    ['POST', '/v2/app/blobs/uploads/', { wants: 'other' }],
    ['PATCH', '/v2/app/blobs/uploads/7b6a-4c_.=', { wants: 'other' }],
    ['GET', '/v2/', { wants: 'other' }],
    ['GET', '/v2', { wants: 'other' }],
    ['GET', '/v2/_catalog', { wants: 'other' }],
    ['POST', '/v2/token', { wants: 'other' }],
    ['GET', '/v1/search', { wants: 'other' }],
    ['GET', '/service/token', { wants: 'unknown' }],
    ['GET', `/docker/registry/v2/blobs/sha256/aa/${D.slice(7)}/data`, { wants: 'unknown' }],
    ['GET', '/store//layer', { wants: 'unknown' }],
    ['GET', '/somewhere/else', { wants: 'unknown' }],
  ])('%s %s', (method, path, expected) => {
    expect(registryRequest(method, path)).toEqual(expected);
  });
});

describe('a server may parse another image', () => {
  test.each([
    '/v2/app/manifests/1/',
    '/v2/app/manifests//1',
    '/v2/app/manifests/1/.',
    '/v2/app/manifests/1/x/..',
    '/v2/app/manifests/',
    '/v2/app/manifests',
    '/v2/app/manifests/1%2F',
    '/v2/app/manifests/%31',
    '/v2/app/manifests/1;x',
    '/v2/app/manifests/1 ',
    '/v2/app/manifests/.1',
    `/v2/app/manifests/${D.toUpperCase()}`,
    '/v2/app/manifests/sha256:abc',
    '/v2/app/Manifests/1',
    '/v2/app;x/manifests/1',
    '/v2/App/manifests/1',
    '/v2/app\\manifests\\1',
    '/v2/team%2Fapp/manifests/1',
    '/v2/app/%6danifests/1',
    '/v2/app%zz/manifests/1',
    '/v2/manifests/1',
    '/v2/a/../b/manifests/1',
    '/v2/a%2f..%2fb/manifests/1',
    '/v2//b/manifests/1',
    '//v2/b/manifests/1',
    '/./v2/b/manifests/1',
    '/x/../v2/b/manifests/1',
    '/x/%2e%2e/v2/b/manifests/1',
    '/V2/b/manifests/1',
    '/%76%32/b/manifests/1',
    '/%2576%2532/b/manifests/1',
    '/v2;x/b/manifests/1',
    '/ v2/b/manifests/1',
    '\\v2\\b\\manifests\\1',
    '/api/docker/local/v2/b/manifests/1',
    '/api/docker/local/v2/b/Manifest%73/1',
    '/v1/app/manifests/1',
    '/v1/images/abc/layer',
    `/v2/app/blobs/${D}/`,
    '/v2/app/blobs/1',
    '/v2/app/blobs/uploads/a%2Fb',
    '/v2/app/tags/list/',
    '/v2/app/tags',
    '/v2/app/referrers/1',
    '/v2/app/other/1',
    '/v2/..',
    '/v2/%2e%2e',
  ])('GET %s', (path) => {
    expect(registryRequest('GET', path)).toEqual({ wants: 'unclear' });
  });

  test.each(['POST', 'get', 'PATCH', 'X'])('%s of a manifest', (method) => {
    expect(registryRequest(method, '/v2/app/manifests/1')).toEqual({ wants: 'unclear' });
  });
});

describe('the gateway policy', () => {
  const manifest = (repository: string, reference: { tag: string } | { digest: string }) =>
    ({ wants: 'manifest', repository, ...reference }) as const;

  test('passes a digest that an allowed tag led to, for that repository, until the list changes', () => {
    const policy = pullPolicy();
    policy.set(['a.b/app:1']);
    expect(policy.refusal('a.b', manifest('app', { tag: '1' }))).toBeUndefined();
    expect(policy.refusal('a.b', manifest('app', { digest: D }))).toContain(`a.b/app@${D} is not among`);
    policy.learn('a.b', 'app', [D]);
    expect(policy.refusal('a.b', manifest('app', { digest: D }))).toBeUndefined();
    expect(policy.refusal('a.b', manifest('other', { digest: D }))).toBeDefined();
    expect(policy.refusal('c.d', manifest('app', { digest: D }))).toBeDefined();
    policy.set(['a.b/app:2']);
    expect(policy.refusal('a.b', manifest('app', { digest: D }))).toBeDefined();
  });

  test('passes anything else in allowed repositories and registries', () => {
    const policy = pullPolicy();
    policy.set(['a.b/app:1', 'busybox']);
    expect(policy.refusal('a.b', { wants: 'content', repository: 'app' })).toBeUndefined();
    expect(policy.refusal('a.b', { wants: 'content', repository: 'other' })).toContain('a.b/other');
    expect(policy.refusal('a.b', { wants: 'other' })).toBeUndefined();
    expect(policy.refusal('c.d', { wants: 'other' })).toContain('nothing of c.d');
    expect(policy.refusal('a.b', { wants: 'unclear' })).toContain('not in canonical form');
    expect(policy.refusal('auth.docker.io', { wants: 'unknown' })).toBeUndefined();
    expect(policy.refusal('auth.example.com', { wants: 'unknown' })).toBeDefined();
  });

  test('remembers a bounded number of digests, the newest', () => {
    const learned = learnedDigests();
    learned.add('old', [D]);
    for (let index = 0; index < 10_000; index += 1) learned.add('new', [`sha256:${index}`]);
    expect(learned.has('old', D)).toBe(false);
    expect(learned.has('new', 'sha256:9999')).toBe(true);
  });

  test.each([
    '',
    '{',
    '[]',
    '{"manifests":{}}',
    '{"manifests":[1,{"digest":2},null]}',
    '{"layers":[{"digest":"x"}]}',
    '{"manifests":[{"digest":"x"}]}',
  ])('learns no digests from %j', (body) => expect(digestsOfIndex(body)).toEqual([]));
});
