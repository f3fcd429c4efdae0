import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../src/json.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { readBlocks, storedBlocks } from '../../src/settings/blocks.ts';
import { portRange } from '../../src/settings/machine-values.ts';
import { mergeBlocks } from '../../src/settings/merge.ts';

function readMachine(machine: JsonValue) {
  const { blocks, problems } = readBlocks({ machine });
  return { options: blocks.machine ?? {}, problems };
}

describe('reading the machine block', () => {
  test('puts values in canonical form', () => {
    const { options, problems } = readMachine({
      mounts: { '/opt//data/': 'read-only', '~/work/': 'writable', '~': 'none', '/gone': null },
      hostPorts: [9000, '3002-3010', 3001, '8080', 9000],
      pauseAfterMinutes: 30,
    });
    expect(problems).toEqual([]);
    expect(options).toEqual({
      mounts: { '/opt/data': 'read-only', '~/work': 'writable', '~': 'none', '/gone': null },
      hostPorts: ['3001-3010', 8080, 9000],
      pauseAfterMinutes: 30,
    });
  });

  test.each([
    ['text', '', 'machine must be a mapping'],
    [{ mount: {} }, '/mount', '"mount" is not a setting of the machine'],
    [{ mounts: [] }, '/mounts', 'mounts must be a mapping of directories to modes'],
    [{ mounts: { work: 'writable' } }, '/mounts/work', '"work" is not the path of a directory'],
    [{ mounts: { '~user': 'writable' } }, '/mounts/~0user', '"~user" is not the path of a directory'],
    [{ mounts: { '/a/../b': 'writable' } }, '/mounts/~1a~1..~1b', '"/a/../b" is not the path of a directory'],
    [{ mounts: { '/a\nb': 'writable' } }, '/mounts/~1a\nb', '"/a\nb" is not the path of a directory'],
    [{ mounts: { '/a': 'rw' } }, '/mounts/~1a', '"rw" is not a mode of a mount'],
    [{ mounts: { '/a': 'writable', '/a/': 'none' } }, '/mounts/~1a~1', '"/a" is listed twice'],
    [{ hostPorts: 80 }, '/hostPorts', 'hostPorts must be a list of ports'],
    [{ hostPorts: [0] }, '/hostPorts/0', '0 is not a port'],
    [{ hostPorts: [80, 65_536] }, '/hostPorts/1', '65536 is not a port'],
    [{ hostPorts: ['30-20'] }, '/hostPorts/0', '"30-20" is not a port'],
    [{ hostPorts: [80.5] }, '/hostPorts/0', '80.5 is not a port'],
    [{ hostPorts: ['80-90-100'] }, '/hostPorts/0', '"80-90-100" is not a port'],
    [{ pauseAfterMinutes: '30' }, '/pauseAfterMinutes', 'pauseAfterMinutes is not a number of minutes'],
    [{ pauseAfterMinutes: -1 }, '/pauseAfterMinutes', 'pauseAfterMinutes is not a number of minutes'],
    [{ pauseAfterMinutes: null }, '/pauseAfterMinutes', 'pauseAfterMinutes is not a number of minutes'],
  ])('refuses %j', (block, pointer, message) => {
    expect(readMachine(block).problems).toMatchObject([{ pointer: `/machine${pointer}`, message }]);
  });

  test('suggests the name that was meant', () => {
    expect(readMachine({ hostPort: [80] }).problems[0]).toMatchObject({ suggestion: 'hostPorts', part: 'key' });
  });

  test('ports keep their meaning, and are read the same a second time', () => {
    const port = fc.integer({ min: 1, max: 60 });
    const entry = fc.oneof(
      port,
      fc.tuple(port, port).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
    );
    const portsOf = (entries: readonly (number | string)[]) => {
      const ports = entries.flatMap((each) => {
        const [first, last] = portRange(each);
        return Array.from({ length: last - first + 1 }, (_, index) => first + index);
      });
      return [...new Set(ports)].sort((a, b) => a - b);
    };
    fc.assert(
      fc.property(fc.array(entry), (hostPorts) => {
        const once = readMachine({ hostPorts }).options.hostPorts ?? [];
        expect(portsOf(once)).toEqual(portsOf(hostPorts));
        expect(readMachine({ hostPorts: once }).options.hostPorts).toEqual(once);
      }),
    );
  });
});

test('a change wins: mounts by directory, anything else as a whole', () => {
  const machine = {
    ...DEFAULT_BLOCKS.machine,
    mounts: { '/a': 'writable', '/b': 'writable' },
    hostPorts: [80],
  } as const;
  const live = { ...DEFAULT_BLOCKS, machine: { ...machine, hostPorts: [80] } };
  expect(
    mergeBlocks(live, { machine: { mounts: { '/a': null, '/c': 'read-only' }, hostPorts: [90] } }).machine,
  ).toEqual({
    mounts: { '/b': 'writable', '/c': 'read-only' },
    hostPorts: [90],
    pauseAfterMinutes: 0,
  });
  expect(mergeBlocks(live, {}).machine).toBe(live.machine);
});

test('a stored block is complete or damaged', () => {
  expect(storedBlocks({})).toEqual(DEFAULT_BLOCKS);
  expect(storedBlocks({ machine: {} })).toEqual(DEFAULT_BLOCKS);
  expect(storedBlocks({ machine: { hostPorts: [80] } })?.machine).toEqual({
    ...DEFAULT_BLOCKS.machine,
    hostPorts: [80],
  });
  expect(storedBlocks({ machine: { hostPorts: ['x'] } })).toBeUndefined();
  expect(storedBlocks({ machine: null })).toBeUndefined();
});
