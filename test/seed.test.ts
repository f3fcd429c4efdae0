import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { testSeed } from './helpers/seed.ts';

describe('random values in tests come from one seed', () => {
  const numbers = fc.array(fc.nat(), { minLength: 5 });

  test('in properties', () => {
    expect(fc.check(fc.property(numbers, () => true)).seed).toBe(testSeed());
  });

  test('in samples', () => {
    expect(fc.sample(numbers, 20)).toEqual(fc.sample(numbers, { numRuns: 20, seed: testSeed() }));
    expect(fc.sample(numbers, 20)).not.toEqual(fc.sample(numbers, { numRuns: 20, seed: testSeed() + 1 }));
  });

  test('which is fixed, given, or random', () => {
    expect(testSeed('')).toBe(testSeed(''));
    expect(testSeed('-12')).toBe(-12);
    expect(new Set(Array.from({ length: 10 }, () => testSeed('random'))).size).toBeGreaterThan(1);
    for (const wrong of ['1.5', '1e3', 'today', ' ', '99999999999']) expect(() => testSeed(wrong)).toThrow(/neither/);
  });
});
