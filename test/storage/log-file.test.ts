import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openLog } from '../../src/storage/log-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const trouble = (error: Error) => {
  throw error;
};

test('lines are JSON, secrets are hidden wherever they stand, and causes are kept', async () => {
  const directory = join(temporaryDirectory(), 'logs');
  const log = await openLog(directory, 'info', trouble);
  log.write('debug', 'not yet');
  log.setLevel('debug');
  log.write('debug', 'now', {
    password: 's3cret',
    headers: { authorization: 's3cret' },
    a: { b: { proxy: { password: 's3cret' } } },
  });
  log.write('error', 'failed', { error: new Error('outer', { cause: new Error('inner') }) });
  await log.close();
  const file = join(directory, 'service.log');
  const text = readFileSync(file, 'utf8');
  expect(text).not.toContain('s3cret');
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ msg }) => msg)).toEqual(['now', 'failed']);
  expect(JSON.stringify(lines[1])).toContain('inner');
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('the log is bounded: three files of 5 MB at most', async () => {
  const directory = join(temporaryDirectory(), 'logs');
  for (let part = 0; part < 6; part += 1) {
    const log = await openLog(directory, 'info', trouble);
    for (let line = 0; line < 4; line += 1) log.write('info', 'x'.repeat(1_000_000));
    await log.close();
  }
  const sizes = readdirSync(directory).map((name) => statSync(join(directory, name)).size);
  expect(sizes.length).toBeLessThanOrEqual(3);
  for (const size of sizes) expect(size).toBeLessThan(10_000_000);
});
