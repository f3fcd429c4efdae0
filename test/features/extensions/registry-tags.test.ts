import { describe, expect, test } from 'vitest';
import { registryTags } from '../../../src/features/extensions/registry-tags.ts';
import { parseExtensionImage } from '../../../src/settings/extension-image.ts';

type Script = Record<string, { status?: number; headers?: Record<string, string>; body?: string; needs?: string }>;

/** Responses by URL; one that needs a token is refused with a challenge that points to `https://auth.test/token`. */
async function ask(name: string, script: Script, signal = new AbortController().signal) {
  const asked: string[] = [];
  const image = parseExtensionImage(name);
  if (!image) throw new Error(`${name} is no name`);
  const tags = registryTags(image, signal, async (url, init) => {
    asked.push(url);
    const found = script[url];
    if (!found) throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
    const token = new Headers(init.headers).get('authorization');
    if (found.needs !== undefined && token !== found.needs) {
      const realm = script.realm?.body ?? 'https://auth.test/token';
      return new Response('', {
        status: 401,
        headers: { 'www-authenticate': `Bearer realm="${realm}",service="reg",scope="repository:x:pull"` },
      });
    }
    return new Response(found.body ?? '', { status: found.status ?? 200, headers: found.headers ?? {} });
  });
  return { tags: await tags, asked };
}

const list = (...tags: string[]) => JSON.stringify({ name: 'x', tags });

test('uses HTTP for a registry on the loopback interface and HTTPS for others', async () => {
  expect(await ask('127.0.0.1:5000/a/b', { 'http://127.0.0.1:5000/v2/a/b/tags/list': { body: list('1') } })).toEqual({
    tags: ['1'],
    asked: ['http://127.0.0.1:5000/v2/a/b/tags/list'],
  });
  const { tags } = await ask('reg.test/a', { 'https://reg.test/v2/a/tags/list': { body: list('1', '2') } });
  expect(tags).toEqual(['1', '2']);
});

test('finds the API of the default registry elsewhere, with an anonymous token', async () => {
  const { tags, asked } = await ask('org/tool', {
    'https://registry-1.docker.io/v2/org/tool/tags/list': { body: list('1'), needs: 'Bearer t' },
    'https://auth.test/token?service=reg&scope=repository%3Aorg%2Ftool%3Apull': { body: '{"token":"t"}' },
  });
  expect(tags).toEqual(['1']);
  expect(asked).toHaveLength(3);
});

test('follows long lists page by page on the same server', async () => {
  const first = 'https://reg.test/v2/a/tags/list';
  const script = {
    [first]: { body: list('1'), headers: { link: '</v2/a/tags/list?last=1>; rel="next"' } },
    [`${first}?last=1`]: { body: list('2'), headers: { link: '<https://elsewhere.test/x>; rel="next"' } },
  };
  expect((await ask('reg.test/a', script)).tags).toEqual(['1', '2']);
});

test('skips invalid tags, and limits the length of a list', async () => {
  const first = 'https://reg.test/v2/a/tags/list';
  const many = Array.from({ length: 9_999 }, (_, at) => `t${at}`);
  const script = {
    [first]: {
      body: list('1.0.0', '9'.repeat(200), 'a b', '1\u009b', ...many),
      headers: { link: `<${first}?last=1>; rel="next"` },
    },
    [`${first}?last=1`]: { body: list('2.0.0'), headers: { link: `<${first}?last=2>; rel="next"` } },
    [`${first}?last=2`]: { body: list('3.0.0') },
  };
  const { tags, asked } = await ask('reg.test/a', script);
  expect(tags).toEqual(['1.0.0', ...many]);
  expect(asked).toEqual([first]);
});

test('follows redirects, and takes the token to no other host', async () => {
  const first = 'https://reg.test/v2/a/tags/list';
  const given: (string | null)[] = [];
  const image = parseExtensionImage('reg.test/a');
  if (!image) throw new Error('no name');
  const tags = await registryTags(image, new AbortController().signal, async (url, init) => {
    const token = new Headers(init.headers).get('authorization');
    if (url.startsWith('https://auth.test/')) return new Response('{"token":"t"}');
    if (url === first && token === null) {
      return new Response('', { status: 401, headers: { 'www-authenticate': 'Bearer realm="https://auth.test/"' } });
    }
    given.push(token);
    if (url === first) return new Response('', { status: 307, headers: { location: '/other' } });
    if (url === 'https://reg.test/other')
      return new Response('', { status: 302, headers: { location: 'https://cdn.test/list' } });
    return new Response(list('1'));
  });
  expect(tags).toEqual(['1']);
  expect(given).toEqual(['Bearer t', 'Bearer t', null]);
});

describe('a registry elsewhere', () => {
  const first = 'https://reg.test/v2/a/tags/list';
  test.each([
    'http://reg.test/plain',
    'http://127.0.0.1:2375/containers/json',
    'https://127.1/x',
    'https://localhost:6443/api',
    'https://a.localhost/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://0/',
    'file:///etc/passwd',
  ])('cannot send a request to %s', async (location) => {
    const asked: string[] = [];
    const image = parseExtensionImage('reg.test/a');
    if (!image) throw new Error('no name');
    const answers = [
      { status: 302, headers: { location } },
      { status: 401, headers: { 'www-authenticate': `Bearer realm="${location}"` } },
    ];
    for (const answer of answers) {
      const tags = registryTags(image, new AbortController().signal, async (url) => {
        asked.push(url);
        return new Response('', answer);
      });
      await expect(tags).rejects.toMatchObject({ code: 'ERR_CONNECTION' });
    }
    expect(asked).toEqual([first, first]);
  });

  test('cannot send it around for ever', async () => {
    let count = 0;
    const image = parseExtensionImage('reg.test/a');
    if (!image) throw new Error('no name');
    const tags = registryTags(image, new AbortController().signal, async (url) => {
      count += 1;
      return new Response('', { status: 302, headers: { location: url } });
    });
    await expect(tags).rejects.toMatchObject({ code: 'ERR_CONNECTION', message: expect.stringContaining('redirects') });
    expect(count).toBe(6);
  });
});

describe('errors', () => {
  const address = 'https://reg.test/v2/a/tags/list';
  test.each<[string, Script, string, RegExp]>([
    ['no such repository', { [address]: { status: 404 } }, 'ERR_NOT_FOUND', /has no a/],
    ['nobody there', {}, 'ERR_CONNECTION', /reg\.test cannot be reached: connect ECONNREFUSED/],
    ['no JSON', { [address]: { body: '<html>' } }, 'ERR_CONNECTION', /did not return a list/],
    ['too long', { [address]: { body: 'x'.repeat(5_000_000) } }, 'ERR_CONNECTION', /larger than/],
    ['a list', { [address]: { body: '[]' } }, 'ERR_CONNECTION', /not an object/],
    ['private', { [address]: { needs: 'never' }, 'https://auth.test/token': {} }, 'ERR_CONNECTION', /./],
    [
      'a way to the token that others can read',
      { [address]: { needs: 'x' }, realm: { body: 'http://auth.test/t' } },
      'ERR_CONNECTION',
      /does not allow anonymous access/,
    ],
  ])('%s', async (_what, script, code, message) => {
    await expect(ask('reg.test/a', script)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test('cancellation', async () => {
    await expect(ask('reg.test/a', {}, AbortSignal.abort())).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });
});
