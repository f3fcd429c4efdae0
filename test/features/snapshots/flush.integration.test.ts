import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { flush } from '../../../src/features/snapshots/tree.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

/** A `sync` that records its arguments, and fails this way when it gets any. */
function program(words: string): string {
  const directory = temporaryDirectory();
  const asked = join(directory, 'asked');
  mkdirSync(join(directory, 'bin'));
  writeFileSync(
    join(directory, 'bin', 'sync'),
    `#!/bin/sh\necho "sync $*" >> '${asked}'\n[ $# -eq 0 ] && exit 0\necho '${words}' >&2\n[ -z '${words}' ]\n`,
    { mode: 0o755 },
  );
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('PATH', `${join(directory, 'bin')}:${process.env.PATH}`);
  return asked;
}

test.skipIf(process.platform !== 'linux')('what cannot be flushed to disk is not a copy', async () => {
  program('sync: error syncing /copy: Input/output error');
  await expect(flush(['/copy'])).rejects.toMatchObject({
    code: 'ERR_IO',
    message: expect.stringContaining('Input/output error'),
  });
});

test.skipIf(process.platform !== 'linux')('without support for single files, everything is flushed', async () => {
  const asked = program('sync: unrecognized option: file-system');
  await flush(['/copy', '/other']);
  expect(readFileSync(asked, 'utf8')).toBe('sync --file-system /copy /other\nsync \n');
});
