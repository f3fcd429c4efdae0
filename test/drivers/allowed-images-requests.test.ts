import { describe, expect, test } from 'vitest';
import { denial } from '../../src/drivers/engines/authz-plugin.ts';
import type { EngineCall } from '../../src/drivers/engines/authz-request.ts';
import { askedOf } from '../../src/drivers/engines/authz-request.ts';
import { digestsOfIndex, learnedDigests } from '../../src/drivers/engines/learned-digests.ts';
import { pullPolicy } from '../../src/drivers/engines/pull-policy.ts';
import { registryRequest } from '../../src/drivers/engines/registry-request.ts';

const D = `sha256:${'a'.repeat(64)}`;

function post(uri: string, more: Partial<EngineCall> = {}): EngineCall {
  return { method: 'POST', uri, headers: {}, ...more };
}

function imagesOf(call: EngineCall): unknown {
  const asked = askedOf(call);
  return asked.brings === 'images' ? asked.references : asked.brings;
}

const BUSYBOX = { registry: 'docker.io', repository: 'library/busybox' };
const json = { headers: { 'Content-Type': 'application/json' } };

describe('what a request to dockerd would bring in', () => {
  test.each([
    ['/images/create?fromImage=busybox&tag=1', [{ ...BUSYBOX, tag: '1' }]],
    ['/v1.41/images/create?fromImage=docker.io/library/busybox:1', [{ ...BUSYBOX, tag: '1' }]],
    ['/v1.41/images/create?fromImage=busybox', [BUSYBOX]],
    ['/images/create?fromImage=busybox%3A&tag=', [BUSYBOX]],
    ['/images/create?fromImage=busybox:1&tag=2', [{ ...BUSYBOX, tag: '2' }]],
    [`/images/create?fromImage=busybox&tag=${D}`, [{ ...BUSYBOX, digest: D }]],
    [`/images/create?fromImage=busybox@${D}&tag=1`, [{ ...BUSYBOX, tag: '1', digest: D }]],
    // The first of two counts, as in dockerd.
    ['/images/create?fromImage=busybox&fromImage=ghcr.io/x&tag=1', [{ ...BUSYBOX, tag: '1' }]],
    // Other spellings of one path.
    ['/v1.41/%69mages%2fcreate?fromImage=busybox', [BUSYBOX]],
    ['//images/./create/?fromImage=busybox', [BUSYBOX]],
    ['/v1.41/x/../images/create?fromImage=busybox', [BUSYBOX]],
    ['http://docker/v1.41/images/create?fromImage=busybox', [BUSYBOX]],
    ['/plugins/pull?remote=vieux/sshfs&name=x', [{ registry: 'docker.io', repository: 'vieux/sshfs', tag: 'latest' }]],
    ['/plugins/my/plugin/upgrade?remote=a.b/c:1', [{ registry: 'a.b', repository: 'c', tag: '1' }]],
    ['/images/create?fromSrc=-&repo=busybox', 'anything'],
    ['/images/create?fromImage=&fromSrc=-', 'anything'],
    ['/images/load?quiet=1', 'anything'],
    ['/v1.41/plugins/create?name=x', 'anything'],
    ['/images/create?fromImage=Not%20A%20Name', 'unknown'],
    ['/images/create%zz?fromImage=busybox', 'unknown'],
    ['/plugins/pull', 'unknown'],
    ['/containers/create?name=images/create', 'nothing'],
    ['/build?t=x', 'nothing'],
    ['/images/busybox/push', 'nothing'],
    ['/images/busybox/tag?repo=x', 'nothing'],
    ['/commit?repo=x', 'nothing'],
  ])('POST %s', (uri, brings) => {
    expect(imagesOf(post(uri))).toEqual(brings);
  });

  test('reading and deleting bring nothing', () => {
    for (const method of ['GET', 'HEAD', 'DELETE']) {
      expect(askedOf(post('/images/create?fromImage=x', { method }))).toEqual({ brings: 'nothing' });
    }
  });

  test('a form could say something else than the query', () => {
    for (const type of ['application/x-www-form-urlencoded', ' Application/X-WWW-Form-Urlencoded; charset=utf-8']) {
      const call = post('/images/create?fromImage=busybox', { headers: { 'content-type': type } });
      expect(askedOf(call)).toMatchObject({ brings: 'unknown', why: expect.stringContaining('form') });
    }
  });

  test.each([
    [{ TaskTemplate: { ContainerSpec: { Image: 'busybox' } } }, [{ ...BUSYBOX, tag: 'latest' }]],
    [{ tasktemplate: { CONTAINERSPEC: { image: 'busybox:1' } } }, [{ ...BUSYBOX, tag: '1' }]],
    [{ TaskTemplate: { PluginSpec: { Remote: 'busybox:1' } } }, [{ ...BUSYBOX, tag: '1' }]],
    [
      { TaskTemplate: { ContainerSpec: { Image: 'busybox:1', image: 'busybox:2' } } },
      [
        { ...BUSYBOX, tag: '1' },
        { ...BUSYBOX, tag: '2' },
      ],
    ],
    [{ TaskTemplate: { ContainerSpec: { Image: 7 } } }, 'unknown'],
    [{ Mode: {} }, 'nothing'],
  ])('a service of a swarm: %j', (body, brings) => {
    for (const uri of ['/services/create', '/v1.41/services/abc/update?version=3']) {
      expect(imagesOf(post(uri, { ...json, body: JSON.stringify(body) }))).toEqual(brings);
    }
  });

  test('a service whose body is not shown could be any', () => {
    expect(askedOf(post('/services/create'))).toMatchObject({ brings: 'unknown' });
  });
});

describe('what the plugin says', () => {
  const policy = pullPolicy();

  test('nothing is allowed before there is a list, and archives only with everything', () => {
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
    expect(denial(undefined, policy)).toContain('could not be understood');
    policy.set(['*']);
    expect(denial(post('/images/load'), policy)).toBeUndefined();
  });
});

describe('requests to a registry', () => {
  test.each([
    ['GET', '/v2/team/app/manifests/1', { wants: 'manifest', repository: 'team/app', tag: '1' }],
    ['HEAD', '/v2/app/manifests/latest', { wants: 'manifest', repository: 'app', tag: 'latest' }],
    ['GET', `/v2/app/manifests/${D}`, { wants: 'manifest', repository: 'app', digest: D }],
    ['GET', '/v2/team%2Fapp/%6danifests/1', { wants: 'manifest', repository: 'team/app', tag: '1' }],
    ['GET', '/v2/manifests/manifests/manifests', { wants: 'manifest', repository: 'manifests', tag: 'manifests' }],
    ['GET', `/v2/app/blobs/${D}`, { wants: 'blob', repository: 'app' }],
    ['HEAD', `/v2/app/blobs/${D}`, { wants: 'other' }],
    ['PUT', '/v2/app/manifests/1', { wants: 'other' }],
    ['GET', '/v2/', { wants: 'other' }],
    ['GET', '/v2', { wants: 'other' }],
    ['GET', '/v2/app/tags/list', { wants: 'other' }],
    ['GET', '/v1/app/manifests/1', { wants: 'unknown' }],
    ['GET', '/v2/a/../b/manifests/1', { wants: 'unclear' }],
    ['GET', '/v2/a%2f..%2fb/manifests/1', { wants: 'unclear' }],
    ['GET', '/v2//b/manifests/1', { wants: 'unclear' }],
    ['GET', '//v2/b/manifests/1', { wants: 'unclear' }],
    ['GET', '/x/%2e%2e/v2/b/manifests/1', { wants: 'unclear' }],
    ['GET', '/v2/a%zz/manifests/1', { wants: 'unclear' }],
    ['GET', '/store//layer', { wants: 'unknown' }],
    ['GET', '/somewhere/else', { wants: 'unknown' }],
  ])('%s %s', (method, path, expected) => {
    expect(registryRequest(method, path)).toEqual(expected);
  });
});

describe('the policy of a gateway', () => {
  const manifest = (repository: string, reference: { tag: string } | { digest: string }) =>
    ({ wants: 'manifest', repository, ...reference }) as const;

  test('lets a digest through that an allowed tag led to, for that repository, until the list changes', () => {
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

  test('lets through what else belongs to allowed repositories and registries', () => {
    const policy = pullPolicy();
    policy.set(['a.b/app:1', 'busybox']);
    expect(policy.refusal('a.b', { wants: 'blob', repository: 'app' })).toBeUndefined();
    expect(policy.refusal('a.b', { wants: 'blob', repository: 'other' })).toContain('a.b/other');
    expect(policy.refusal('a.b', { wants: 'other' })).toBeUndefined();
    expect(policy.refusal('c.d', { wants: 'other' })).toContain('nothing of c.d');
    expect(policy.refusal('a.b', { wants: 'unclear' })).toContain('not spelled');
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

  test.each(['', '{', '[]', '{"manifests":{}}', '{"manifests":[1,{"digest":2},null]}', '{"layers":[{"digest":"x"}]}'])(
    'no digests are learned from %j',
    (body) => expect(digestsOfIndex(body)).toEqual([]),
  );
});
