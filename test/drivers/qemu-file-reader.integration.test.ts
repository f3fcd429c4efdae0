import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { fileReader, READ_SCRIPT } from '../../src/drivers/machines/qemu/file-reader.ts';
import { RdError } from '../../src/errors.ts';
import { converse } from '../../src/os/run.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A guest whose files are those of this host. `programs`: those it was made to start. */
function scene(run: () => Promise<string> = () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'unreachable'))) {
  const programs: string[] = [];
  const sessions: Duplex[] = [];
  const reader = fileReader({
    async converse(argv) {
      programs.push('bash');
      expect(argv).toEqual(['bash', '-c', READ_SCRIPT]);
      const session = converse(argv, { PATH: process.env.PATH ?? '', LC_ALL: 'C' });
      sessions.push(session);
      return session;
    },
    async run() {
      programs.push('cat');
      return { exitCode: 0, stdout: await run(), stderr: '' };
    },
  });
  onTestFinished(reader.end);
  return { reader, programs, sessions, directory: temporaryDirectory() };
}

test('all files are read by one program, also at once', async () => {
  const { reader, programs, directory } = scene();
  const path = (name: string) => join(directory, name);
  const texts = ['', 'one', 'one\n', ' two\n\n lines\\ ', '-', '+', 'é'.repeat(100_000)];
  texts.forEach((text, index) => void writeFileSync(path(String(index)), text));
  mkdirSync(path('a directory'));
  expect(await Promise.all(texts.map((_, index) => reader.read(path(String(index)))))).toEqual(texts);
  expect(await reader.read(path('a directory'))).toBe('');
  expect(await reader.read(path('nothing'))).toBeUndefined();
  expect(await reader.read(path('nothing/below'))).toBeUndefined();
  rmSync(path('1'));
  expect(await reader.read(path('1'))).toBeUndefined();
  expect(await reader.read(`/proc/${process.pid}/stat`)).toMatch(/^\d+ \(/);
  expect(programs).toEqual(['bash']);
});

test('a program that has ended is started again', async () => {
  const { reader, programs, sessions, directory } = scene();
  writeFileSync(join(directory, 'one'), '1');
  expect(await reader.read(join(directory, 'one'))).toBe('1');
  sessions[0]?.destroy();
  expect(await reader.read(join(directory, 'one'))).toBe('1');
  expect(programs).toEqual(['bash', 'bash']);
});

test('one that breaks off in an answer is not believed: the file is read in another way, or the reason is given', async () => {
  const broken = () => converse(['sh', '-c', 'read -r path; printf +half'], { PATH: process.env.PATH ?? '' });
  const reader = (run: () => Promise<string>) =>
    fileReader({ converse: async () => broken(), run: async () => ({ exitCode: 0, stdout: await run(), stderr: '' }) });
  expect(await reader(async () => 'whole').read('/one')).toBe('whole');
  const unreachable = () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'the guest cannot be reached'));
  await expect(reader(unreachable).read('/one')).rejects.toThrow('the guest cannot be reached');
});
