import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openLog } from '../../src/os/log-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const trouble = (error: Error) => {
  throw error;
};

test('lines are JSON, secrets are redacted everywhere, and causes are kept', async () => {
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

test('the log is limited to three files of 5 MB', async () => {
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

test.runIf(process.platform !== 'win32').each([
  ['a link', (file: string, other: string) => symlinkSync(other, file), 'symbolic link'],
  ['a pipe', (file: string) => void execFileSync('mkfifo', [file]), 'pipe'],
])('%s in its place is not written to; this is reported once, and the service runs on', async (_name, plant, why) => {
  const directory = temporaryDirectory();
  const other = join(temporaryDirectory(), 'other');
  writeFileSync(other, 'of somebody\n');
  plant(join(directory, 'service.log'), other);
  const told: string[] = [];
  const log = await openLog(directory, 'info', ({ message }) => told.push(message));
  log.write('info', 'x'.repeat(100_000));
  await log.close();
  expect(told).toEqual([expect.stringMatching(new RegExp(`could not open .*service\\.log: .*${why}`))]);
  expect(readFileSync(other, 'utf8')).toBe('of somebody\n');
});

test.runIf(process.platform !== 'win32')('links in place of older files are replaced on rotation', async () => {
  const directory = temporaryDirectory();
  const other = join(temporaryDirectory(), 'other');
  writeFileSync(other, 'of somebody\n');
  for (const name of ['service.1.log', 'service.2.log']) symlinkSync(other, join(directory, name));
  writeFileSync(join(directory, 'service.log'), 'x'.repeat(6_000_000));
  const log = await openLog(directory, 'info', trouble);
  log.write('info', 'after');
  await log.close();
  expect(lstatSync(join(directory, 'service.1.log')).size).toBe(6_000_000);
  expect(readFileSync(other, 'utf8')).toBe('of somebody\n');
});
