import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../src/os/run.ts';

test('unit tests start no programs and open no ports', async () => {
  expect(() => spawn('true')).toThrow('*.integration.test.ts');
  await expect(run(['true'])).rejects.toThrow();
  expect(() => createServer().listen(0)).toThrow('*.integration.test.ts');
});

// Unit tests share their modules, so a mock that is not restored leaks into every file that follows.
test('unit tests restore every module they mock', () => {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.integration.test.ts'))
    .filter((name) => !/^(?:e2e|stress)\//.test(name) && name !== 'in-process.test.ts');
  expect(files.length).toBeGreaterThan(100);
  const mocking = files.filter((name) => {
    const text = readFileSync(join('test', name), 'utf8');
    return text.includes('vi.mock(') || (text.includes('vi.doMock(') && !text.includes('vi.doUnmock('));
  });
  expect(mocking).toEqual([]);
});
