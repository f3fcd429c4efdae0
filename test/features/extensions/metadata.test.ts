import { describe, expect, test } from 'vitest';
import { parseMetadata } from '../../../src/features/extensions/metadata.ts';

const read = (document: unknown) =>
  parseMetadata(typeof document === 'string' ? document : JSON.stringify(document), 'linux');

test('a complete document', () => {
  const document = {
    icon: './icon.svg',
    other: { kept: true },
    ui: { 'dashboard-tab': { title: 'T', root: 'ui//', src: 'index.html', backend: { socket: 'x' } } },
    vm: { composefile: 'compose.yaml', exposes: { socket: 'x' } },
    host: {
      binaries: [
        { linux: [{ path: 'host/one' }, { path: '/host/two' }], darwin: [{ path: '/mac/one' }] },
        { windows: [{ path: '/win/one.exe' }] },
      ],
      'x-rd-install': { linux: ['one', 'install'] },
    },
  };
  expect(read(document)).toEqual({
    metadata: {
      document,
      icon: '/icon.svg',
      ui: [{ name: 'dashboard-tab', root: '/ui' }],
      binaries: ['/host/one', '/host/two'],
      vm: { composefile: '/compose.yaml' },
      leftOut: [
        expect.stringContaining('x-rd-install is not run'),
        expect.stringContaining('vm.exposes'),
        expect.stringContaining('composefile are not started'),
      ],
    },
  });
});

test('an icon is enough, and vm is always present', () => {
  expect(read({ icon: 'i.png' })).toMatchObject({ metadata: { icon: '/i.png', document: { icon: 'i.png', vm: {} } } });
});

describe('refused with the reason', () => {
  test.each<[unknown, RegExp]>([
    ['', /not a JSON object/],
    ['[]', /not a JSON object/],
    ['{', /not a JSON object/],
    [`${'['.repeat(200)}`, /not a JSON object/],
    [{}, /"icon" is missing/],
    [{ icon: 1 }, /"icon" is not a path/],
    [{ icon: '' }, /"icon" is not a path/],
    [{ icon: '/' }, /"icon" is the whole image/],
    [{ icon: '../icon.svg' }, /"icon" has "\.\." in it/],
    [{ icon: 'a/../../icon.svg' }, /"icon" has "\.\." in it/],
    [{ icon: 'a\0b' }, /"icon" is not a path/],
    [{ icon: 'i'.repeat(4097) }, /"icon" is longer than 4096/],
    [{ icon: 'i', ui: { tab: { root: 'r/'.repeat(3000) } } }, /"ui\.tab\.root" is longer/],
    [{ icon: 'i', ui: [] }, /"ui" is not an object/],
    [{ icon: 'i', ui: { tab: {} } }, /"ui\.tab\.root" is missing/],
    [{ icon: 'i', ui: { tab: { root: '..' } } }, /"ui\.tab\.root" has/],
    [{ icon: 'i', ui: { '../tab': { root: 'x' } } }, /cannot be that of a directory/],
    [{ icon: 'i', ui: { '..': { root: 'x' } } }, /cannot be that of a directory/],
    [{ icon: 'i', vm: 'x' }, /"vm" is not an object/],
    [{ icon: 'i', vm: { image: 1 } }, /"vm\.image" is not a name/],
    [{ icon: 'i', vm: { image: 'x', composefile: 'y' } }, /both/],
    [{ icon: 'i', vm: { image: '../../x y' } }, /"vm\.image" is not the name of an image/],
    [{ icon: 'a\u001b[31m' }, /"icon" is not a path/],
    [{ icon: 'i', host: 'x' }, /"host" is not an object/],
    [{ icon: 'i', host: { binaries: {} } }, /"host\.binaries" is not a list/],
    [{ icon: 'i', host: { binaries: [{ linux: 'x' }] } }, /linux" is not a list/],
    [{ icon: 'i', host: { binaries: [{ linux: ['x'] }] } }, /entry that is not an object/],
    [{ icon: 'i', host: { binaries: [{ linux: [{ path: '/a/x' }, { path: '/b/x' }] }] } }, /two files called "x"/],
  ])('%j', (document, problem) => {
    expect(read(document)).toEqual({ problem: expect.stringMatching(problem) });
  });
});

test('refused with more parts than any extension has, because each is an engine request', () => {
  const ui = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`tab${n}`, { root: 'r' }]));
  expect(read({ icon: 'i', ui })).toEqual({ problem: expect.stringContaining('"ui" has more than 100 parts') });
  const binaries = Array.from({ length: 1001 }, (_, n) => ({ linux: [{ path: `/p${n}` }] }));
  expect(read({ icon: 'i', host: { binaries } })).toEqual({
    problem: expect.stringContaining('"host.binaries" has more than 1000 files'),
  });
});
