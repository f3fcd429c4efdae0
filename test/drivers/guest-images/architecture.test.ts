import { describe, expect, test } from 'vitest';
import {
  ARCHITECTURES,
  type Architecture,
  architectureNamed,
  EXECUTABLES,
  guestArchitecture,
} from '../../../src/drivers/guest-images/architecture.ts';

const NAMES = Object.keys(ARCHITECTURES) as Architecture[];

test.each([
  ['x64', 'x86_64'],
  ['arm64', 'aarch64'],
  ['ia32', undefined],
  ['riscv64', undefined],
])('guests on %s are %s', (arch, expected) => {
  expect(guestArchitecture(arch)).toBe(expected);
});

test.each([
  ['amd64', 'x86_64'],
  ['arm64', 'aarch64'],
  ['x86_64', undefined],
])('Debian calls it %s: %s', (debian, expected) => {
  expect(architectureNamed(debian)).toBe(expected);
});

describe.each(NAMES)('a guest for %s', (name) => {
  const facts = ARCHITECTURES[name];

  test('runs the programs of the other architectures and its own without an emulator', () => {
    expect([name, ...facts.emulates].sort()).toEqual(Object.keys(EXECUTABLES).sort());
  });

  test('shares no name with another', () => {
    const namesOf = ({ imageSuffix, debian, node, qemu }: typeof facts) => [
      imageSuffix,
      debian,
      node,
      ...Object.values(qemu),
    ];
    for (const other of NAMES.filter((each) => each !== name)) {
      const shared = namesOf(ARCHITECTURES[other]).filter((each) => namesOf(facts).includes(each));
      expect(shared).toEqual([]);
    }
  });
});
