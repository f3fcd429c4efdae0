import { describe, expect, test } from 'vitest';

describe('a toMatchObject pattern', () => {
  test.each([
    ['at the top', /b/, 'the top'],
    ['in a member', { text: /b/ }, '.text'],
    ['in a list', { list: [{ text: /b/ }] }, '.list[0].text'],
  ])('fails when it contains %s, which would match anything', (_, expected, place) => {
    const actual = { text: 'a', list: [{ text: 'a' }] };
    expect(() => expect(actual).toMatchObject(expected)).toThrow(`compares nothing at ${place}`);
  });

  test('may contain asymmetric matchers', () => {
    expect({ text: 'a' }).toMatchObject({ text: expect.stringMatching(/a/) });
    expect(() => expect({ text: 'a' }).toMatchObject({ text: expect.stringMatching(/b/) })).toThrow('b');
    expect(() => expect({ text: 'a' }).toMatchObject({ text: 'b' })).toThrow('b');
  });

  test('is also checked after rejects and not', async () => {
    await expect(expect(Promise.reject(new Error('a'))).rejects.toMatchObject({ message: /b/ })).rejects.toThrow(
      '.message',
    );
    expect(() => expect({ text: 'a' }).not.toMatchObject({ text: /b/ })).toThrow('.text');
  });
});
