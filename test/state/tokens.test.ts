import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkToken, createToken, listTokens, revokeToken, type TokenRecord } from '../../src/state/tokens.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const AT = '2026-01-01T00:00:00.000Z';
const END = '2026-02-01T00:00:00.000Z';
const NOW = Date.parse('2026-01-15T00:00:00Z');

const ci: TokenRecord = { name: 'ci-bot', scope: 'plan', createdAt: AT, expiresAt: END };

/** No token has been created there. */
const place = () => join(temporaryDirectory(), 'state', 'tokens');

test('a token is recognizable, works until it expires, and only its digest is stored, for the owner alone', async () => {
  const directory = place();
  const token = await createToken(directory, ci);
  expect(token).toMatch(/^rdctl_ci-bot_[A-Za-z0-9_-]{43}$/);
  expect(await checkToken(directory, token, NOW)).toEqual({ kind: 'valid', name: 'ci-bot', scope: 'plan' });
  expect(await checkToken(directory, token, Date.parse(END) - 1)).toMatchObject({ kind: 'valid' });
  expect(await checkToken(directory, token, Date.parse(END))).toEqual({
    kind: 'expired',
    name: 'ci-bot',
    expiresAt: END,
  });
  expect(await listTokens(directory)).toEqual([{ name: 'ci-bot', record: ci }]);
  expect(readdirSync(directory)).toEqual(['ci-bot.json']);
  const stored = readFileSync(join(directory, 'ci-bot.json'), 'utf8');
  expect(stored).not.toContain(token.slice(-43));
  expect(statSync(join(directory, 'ci-bot.json')).mode & 0o777).toBe(0o600);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
});

test('a revoked token is unknown at once, also under a name that is used again', async () => {
  const directory = place();
  const first = await createToken(directory, { name: 'a', scope: 'read', createdAt: AT });
  expect(await revokeToken(directory, 'a')).toBe(true);
  expect(await checkToken(directory, first, NOW)).toEqual({ kind: 'unknown', name: 'a' });
  expect(await revokeToken(directory, 'a')).toBe(false);
  const second = await createToken(directory, { name: 'a', scope: 'read', createdAt: AT });
  expect(await checkToken(directory, first, NOW)).toEqual({ kind: 'unknown', name: 'a' });
  expect(await checkToken(directory, second, NOW)).toMatchObject({ kind: 'valid' });
});

test('of two that are created under one name at the same time, one wins and the other is told', async () => {
  const directory = place();
  const results = await Promise.allSettled([1, 2, 3].map(() => createToken(directory, ci)));
  const [won, ...more] = results.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  expect(more).toEqual([]);
  expect(await checkToken(directory, won ?? '', NOW)).toMatchObject({ kind: 'valid' });
  const lost = results.flatMap((each) => (each.status === 'rejected' ? [String(each.reason.message)] : []));
  expect(lost).toEqual(Array(2).fill('there is a token with the name "ci-bot" already'));
  expect(readdirSync(directory)).toEqual(['ci-bot.json']);
});

test('what is not exactly a token gives no access', async () => {
  const directory = place();
  const token = await createToken(directory, ci);
  const secret = token.slice(-43);
  const malformed = ['', 'rdctl', secret, `${token} `, token.slice(0, -1), `${token}A`, token.toUpperCase()];
  const traversals = [
    `rdctl_../ci-bot_${secret}`,
    `rdctl_.._${secret}`,
    `rdctl_a/b_${secret}`,
    `rdctl_ci-bot\0_${secret}`,
  ];
  for (const presented of [...malformed, ...traversals]) {
    expect(await checkToken(directory, presented, NOW), presented).toEqual({ kind: 'malformed' });
  }
  const unknown = [`rdctl_other_${secret}`, `rdctl_ci-bot_${'A'.repeat(43)}`];
  for (const presented of unknown)
    expect(await checkToken(directory, presented, NOW)).toMatchObject({ kind: 'unknown' });
});

test.each(['', 'CI', 'a_b', '../a', '.a', 'a.', '-a', 'a/b', 'a b', 'ü', 'a'.repeat(64)])(
  '%o cannot be the name of a token',
  async (name) => {
    const directory = place();
    await expect(createToken(directory, { ...ci, name })).rejects.toMatchObject({ code: 'ERR_USAGE' });
    await expect(revokeToken(directory, name)).rejects.toMatchObject({ code: 'ERR_USAGE' });
  },
);

test('a file that is damaged, edited or a link gives no access, is listed, and can be revoked', async () => {
  const directory = place();
  const token = await createToken(directory, ci);
  const path = join(directory, 'ci-bot.json');
  const whole = readFileSync(path, 'utf8');
  const broken = [
    '',
    '{',
    '[]',
    whole.slice(0, -9),
    whole.replace('"plan"', '"root"'),
    whole.replace('ci-bot', 'other'),
  ];
  for (const text of broken) {
    writeFileSync(path, text);
    expect(await checkToken(directory, token, NOW), text).toEqual({ kind: 'unknown', name: 'ci-bot' });
    expect(await listTokens(directory)).toEqual([{ name: 'ci-bot' }]);
  }
  writeFileSync(path, whole.replace(END, 'soon'));
  expect(await checkToken(directory, token, NOW)).toMatchObject({ kind: 'expired' });
  expect(await revokeToken(directory, 'ci-bot')).toBe(true);
  writeFileSync(join(directory, '..', 'elsewhere'), whole);
  symlinkSync('../elsewhere', path);
  expect(await checkToken(directory, token, NOW)).toEqual({ kind: 'unreadable', name: 'ci-bot' });
});

test('what a killed creation left is no token', async () => {
  const directory = place();
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, '.ci-bot.json.0123456789ab.tmp'), '{');
  expect(await listTokens(directory)).toEqual([]);
  expect(await createToken(directory, ci)).toMatch(/^rdctl_/);
});
