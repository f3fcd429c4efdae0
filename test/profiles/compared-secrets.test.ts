import { expect, test } from 'vitest';
import { settleSecrets } from '../../profiles/document/comparison.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';

const PATH = 'experimental.virtualMachine.proxy.password';
const literal = (label: string, password: string) => ({
  label,
  settings: { version: 19, experimental: { virtualMachine: { proxy: { password } } } },
  unread: [],
});
const reference = (label: string, fromEnv: string) => ({
  label,
  settings: { version: 19 },
  unread: [{ path: PATH, reference: { fromEnv }, reason: `the environment variable ${fromEnv} is not set` }] as const,
});
const NOTE = `${PATH} cannot be compared: a only refers to it, and the environment variable X is not set`;

test.each([
  ['a value', literal('b', 'hunter2'), true, [NOTE]],
  ['another reference', reference('b', 'Y'), true, [NOTE]],
  ['the same reference', reference('b', 'X'), true, []],
  ['nothing', { label: 'b', settings: { version: 19 }, unread: [] }, false, []],
] as const)('a secret that is not read, and %s', (_, other, alike, notes) => {
  const one = reference('a', 'X');
  const settled = settleSecrets(one, other);
  expect(leafAt(settled.a, PATH) === leafAt(settled.b, PATH)).toBe(alike);
  expect(settled.notes).toEqual(notes);
  const turned = settleSecrets(other, one);
  expect(leafAt(turned.a, PATH) === leafAt(turned.b, PATH)).toBe(alike);
  expect(turned.notes).toHaveLength(notes.length);
  expect(one.settings).toEqual({ version: 19 });
});
