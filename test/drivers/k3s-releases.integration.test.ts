import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import {
  channelReleases,
  compareK3s,
  k3sReleases,
  newestFirst,
  parseK3s,
  SHIPPED_RELEASES,
} from '../../src/drivers/clusters/k3s/releases.ts';
import { k3sSources } from '../../src/drivers/clusters/k3s/sources.ts';
import { releaseServer } from '../helpers/k3s-release-server.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NEVER = new AbortController().signal;
const LIMIT = 10_000;
const HOUR = 60 * 60_000;

async function scene() {
  const server = await releaseServer();
  onTestFinished(() => server.close());
  server.channels.set('stable', 'v1.33.6+k3s1').set('latest', 'v1.35.0+k3s3').set('v1.32', 'v1.32.9+k3s2');
  const cacheFile = join(temporaryDirectory(), 'k3s', 'channels.json');
  const time = { now: 1_000_000 };
  const releases = () => k3sReleases({ url: server.channelsUrl, cacheFile, fetch, now: () => time.now });
  return { server, cacheFile, time, releases };
}

test.each([
  ['v1.33.6+k3s1', { text: 'v1.33.6+k3s1', version: '1.33.6', build: 1 }],
  ['1.33.6+k3s12', { text: 'v1.33.6+k3s12', version: '1.33.6', build: 12 }],
])('%s is a release', (text, expected) => expect(parseK3s(text)).toEqual(expected));

test.each([
  'v1.33.0-rc1+k3s1',
  'v1.33.6-rc1+k3s1',
  '1.33.6',
  'v1.33.6+rke2r1',
  'v1.33+k3s1',
  'v1.033.6+k3s1',
  '',
  '../k3s',
  'v1.33.6+k3s1/..',
])('%j is not a release', (text) => expect(parseK3s(text)).toBeUndefined());

test('releases are sorted by version, then by build, and each version keeps its newest build', () => {
  const texts = [
    'v1.9.9+k3s1',
    'v1.32.10+k3s1',
    'v1.32.9+k3s10',
    'v1.32.9+k3s9',
    'v1.33.0+k3s1',
    'v1.32.10+k3s2',
    'v1.25.3+k3s1',
  ];
  const sorted = newestFirst(texts.flatMap((text) => parseK3s(text) ?? []));
  expect(sorted.map(({ text }) => text)).toEqual(['v1.33.0+k3s1', 'v1.32.10+k3s2', 'v1.32.9+k3s10', 'v1.25.3+k3s1']);
});

test('the comparison of releases is a total order', () => {
  const number = fc.nat({ max: 99 });
  const release = fc
    .tuple(number, number, number)
    .map(([minor, patch, build]) => parseK3s(`v1.${minor}.${patch}+k3s${build}`))
    .filter((found) => found !== undefined);
  fc.assert(
    fc.property(release, release, release, (a, b, c) => {
      expect(Math.sign(compareK3s(a, b))).toBe(0 - Math.sign(compareK3s(b, a)));
      expect(compareK3s(a, b) === 0).toBe(a.text === b.text);
      if (compareK3s(a, b) <= 0 && compareK3s(b, c) <= 0) expect(compareK3s(a, c)).toBeLessThanOrEqual(0);
    }),
  );
});

test('the built-in list has usable releases, newest first', () => {
  const releases = SHIPPED_RELEASES.flatMap((text) => parseK3s(text) ?? []);
  expect(newestFirst(releases).map(({ text }) => text)).toEqual(SHIPPED_RELEASES);
});

test('a channel list is parsed whatever its types are called, and unusable entries are skipped', () => {
  const list = {
    type: 'collection',
    resourceType: 'channel',
    data: [
      { id: 'stable', type: 'channel', latest: 'v1.33.6+k3s1', unknown: [1] },
      { name: 'v1.34-testing', latest: 'v1.34.3-rc1+k3s1' },
      { name: 'v1.16', latestRegexp: 'v1\\.16\\..*' },
      { name: 7, latest: 30 },
      null,
      'text',
      { name: 'v1.32', latest: 'v1.32.9+k3s2' },
    ],
  };
  expect(channelReleases(list)).toEqual(['v1.33.6+k3s1', 'v1.32.9+k3s2']);
});

test.each([[{}], [[]], ['<html>'], [null], [{ data: {} }], [{ data: [] }], [{ data: [{ name: 'x' }] }]])(
  '%j is not a channel list',
  (value) => expect(channelReleases(value)).toEqual([]),
);

test('parsing a channel list never throws', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      channelReleases({ data: [value, { name: 'a', latest: value }] });
      channelReleases(value);
    }),
  );
});

test('versions are fetched from the server, cached for an hour, and fetched again after that', async () => {
  const { server, time, releases, cacheFile } = await scene();
  const first = await releases().known(LIMIT, NEVER);
  expect(first.failure).toBeUndefined();
  expect(first.releases.slice(0, 3).map(({ text }) => text)).toEqual(['v1.35.0+k3s3', 'v1.34.2+k3s1', 'v1.33.6+k3s1']);
  expect(JSON.parse(readFileSync(cacheFile, 'utf8'))).toMatchObject({
    at: 1_000_000,
    releases: expect.arrayContaining(['v1.33.6+k3s1']),
  });
  time.now += HOUR - 1;
  await releases().known(LIMIT, NEVER);
  expect(server.requests).toHaveLength(1);
  time.now += 1;
  server.channels.set('latest', 'v1.36.0+k3s1');
  const later = await releases().known(LIMIT, NEVER);
  expect(server.requests).toHaveLength(2);
  // A release stays known once a list has named it, even when no channel points to it any more.
  expect(later.releases.slice(0, 2).map(({ text }) => text)).toEqual(['v1.36.0+k3s1', 'v1.35.0+k3s3']);
});

test('setting the clock back does not make an old list current', async () => {
  const { server, time, releases } = await scene();
  await releases().known(LIMIT, NEVER);
  time.now -= HOUR;
  await releases().known(LIMIT, NEVER);
  expect(server.requests).toHaveLength(2);
});

test.each<[string, (response: import('node:http').ServerResponse) => void]>([
  ['is overloaded', (response) => void response.writeHead(503).end()],
  ['breaks off', (response) => void response.destroy()],
  ['wants a login', (response) => void response.end('<html>login</html>')],
  ['sends another document', (response) => void response.end('{"data":[]}')],
  ['sends far too much', (response) => void response.end(Buffer.alloc(3 * 1024 * 1024, 32))],
])('without the server, which %s, the cached list is used, then the built-in one', async (_, answer) => {
  const { server, time, releases, cacheFile } = await scene();
  server.mischief.set('/channels', (_request, response) => answer(response));
  const shipped = await releases().known(LIMIT, NEVER);
  expect(shipped).toMatchObject({ failure: { code: 'ERR_CONNECTION' } });
  expect(shipped.releases.map(({ text }) => text)).toEqual(SHIPPED_RELEASES);
  expect(existsSync(cacheFile)).toBe(false);
  server.mischief.clear();
  await releases().known(LIMIT, NEVER);
  time.now += 30 * 24 * HOUR;
  server.mischief.set('/channels', (_request, response) => answer(response));
  const kept = await releases().known(LIMIT, NEVER);
  expect(kept).toMatchObject({ failure: { code: 'ERR_CONNECTION' } });
  expect(kept.releases[0]?.text).toBe('v1.35.0+k3s3');
});

test('a server that never answers times out', async () => {
  const { server, releases } = await scene();
  server.mischief.set('/channels', () => undefined);
  const known = await releases().known(50, NEVER);
  expect(known.failure?.message).toContain('no response within 0.05 s');
});

test.each(['', '{', '[]', '{"formatVersion":1}', '{"formatVersion":1,"url":"x","at":1,"releases":[]}'])(
  'a cached list that is damaged or from another server (%j) is ignored',
  async (text) => {
    const { server, releases, cacheFile } = await scene();
    await releases().known(LIMIT, NEVER);
    writeFileSync(cacheFile, text);
    expect((await releases().known(LIMIT, NEVER)).failure).toBeUndefined();
    expect(server.requests).toHaveLength(2);
  },
);

test.each([
  ['1.31.14', 'v1.31.14+k3s1'],
  ['1.35.0', 'v1.35.0+k3s3'],
  ['1.32.9', 'v1.32.9+k3s2'],
])('"%s" is %s', async (wanted, release) => {
  const { releases } = await scene();
  expect((await releases().find(wanted, [], LIMIT, NEVER)).text).toBe(release);
});

test.each([
  ['1.25.2', /no release/],
  ['1.99.0', /no release of k3s for "1\.99\.0"$/],
  ['1.33.0-rc1', /no release/],
  ['stable', /no release/],
  ['1.32', /no release/],
  ['', /no release/],
])('"%s" is refused', async (wanted, message) => {
  const { releases } = await scene();
  await expect(releases().find(wanted, [], LIMIT, NEVER)).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    message: expect.stringMatching(message),
  });
});

test('an unknown version is reported with a note when the list is not from the server', async () => {
  const { server, releases } = await scene();
  await server.close();
  await expect(releases().find('1.99.0', [], LIMIT, NEVER)).rejects.toMatchObject({
    message: expect.stringMatching(/could not be fetched/),
    details: [expect.stringMatching(/ECONNREFUSED/)],
    // Settings accept no channel.
    advice: expect.stringMatching(/^Set kubernetes\.version to one of [0-9., ]*1\.34\.2[0-9., ]*\.$/),
  });
});

test('addresses come from the environment, and an invalid value is refused without being shown', () => {
  expect(k3sSources({})).toEqual({
    channels: 'https://update.k3s.io/v1-release/channels',
    releases: 'https://github.com/k3s-io/k3s/releases/download',
  });
  expect(
    k3sSources({ RDCTL_K3S_CHANNELS_URL: 'http://127.0.0.1:1/c/', RDCTL_K3S_RELEASES_URL: 'https://m.example/k3s//' }),
  ).toEqual({
    channels: 'http://127.0.0.1:1/c',
    releases: 'https://m.example/k3s',
  });
  for (const value of ['file:///etc', 'secret', 'https://a.example/?t=secret', 'https://a.example/#x']) {
    expect(() => k3sSources({ RDCTL_K3S_RELEASES_URL: value })).toThrow(/RDCTL_K3S_RELEASES_URL is not/);
    expect(() => k3sSources({ RDCTL_K3S_RELEASES_URL: value })).not.toThrow(/secret/);
  }
});
