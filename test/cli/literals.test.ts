import { describe, expect, test } from 'vitest';
import { formatDuration, parseBoolean, parseDuration, parseInteger } from '../../cli/arguments/values.ts';

describe('booleans', () => {
  test.each(['1', 't', 'T', 'true', 'True', 'TRUE'])('%s is true', (text) => expect(parseBoolean(text)).toBe(true));
  test.each(['0', 'f', 'F', 'false', 'False', 'FALSE'])('%s is false', (text) =>
    expect(parseBoolean(text)).toBe(false),
  );
  test.each(['', 'yes', 'tRUE', ' true', '2'])('%j is neither', (text) => {
    expect(() => parseBoolean(text)).toThrow(`strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
  });
});

describe('integers', () => {
  test.each([
    ['0', 0],
    ['-0', 0],
    ['42', 42],
    ['+42', 42],
    ['-42', -42],
    ['010', 10],
    ['0x1F', 31],
    ['-0X1f', -31],
    ['0o17', 15],
    ['0b101', 5],
    ['1_000', 1000],
    ['0x_ff', 255],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('%s is %d', (text, value) => expect(parseInteger(text)).toBe(value));
  test.each(['', 'abc', '1.5', '1e3', '0x', '1__0', '_1', '1_', ' 1', '--1', '08b'])('%j is not an integer', (text) => {
    expect(() => parseInteger(text)).toThrow(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  });
  test.each(['9007199254740992', '9223372036854775808', '-9223372036854775809'])('%s is out of range', (text) => {
    expect(() => parseInteger(text)).toThrow(`strconv.ParseInt: parsing "${text}": value out of range`);
  });
});

describe('durations', () => {
  test.each([
    ['0', 0],
    ['300ms', 300],
    ['5s', 5000],
    ['10m', 600_000],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['-2s', -2000],
    ['+.5s', 500],
    ['1µs', 0.001],
  ])('%s is %d ms', (text, value) => expect(parseDuration(text)).toBe(value));
  test.each([
    ['5', 'time: missing unit in duration "5"'],
    ['5x', 'time: unknown unit "x" in duration "5x"'],
    ['', 'time: invalid duration ""'],
    ['s', 'time: invalid duration "s"'],
    ['1h x', 'time: unknown unit "h x" in duration "1h x"'],
    ['5constructor', 'time: unknown unit "constructor" in duration "5constructor"'],
    ['99999999h', 'time: invalid duration "99999999h"'],
  ])('%j is refused', (text, message) => expect(() => parseDuration(text)).toThrow(message));
  test.each([
    [600_000, '10m0s'],
    [5000, '5s'],
    [300, '300ms'],
    [5_400_000, '1h30m0s'],
    [0, '0s'],
    [1500, '1.5s'],
  ])('%d ms prints as %s', (ms, text) => expect(formatDuration(ms)).toBe(text));
});
