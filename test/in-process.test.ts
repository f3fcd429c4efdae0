import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { run } from '../src/process/run.ts';

test('a unit test starts no program and opens no port', async () => {
  expect(() => spawn('true')).toThrow('*.integration.test.ts');
  await expect(run(['true'])).rejects.toThrow();
  expect(() => createServer().listen(0)).toThrow('*.integration.test.ts');
});
