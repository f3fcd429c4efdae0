import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ioError } from '../../src/os/io-error.ts';
import { readRegular } from '../../src/os/regular-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test('a link that leads to itself is not taken for one that is not followed', async () => {
  const directory = temporaryDirectory();
  const path = (name: string) => join(directory, name);
  symlinkSync('circle', path('circle'));
  writeFileSync(path('file'), '');
  symlinkSync('file', path('link'));
  const thrown = (name: string) => {
    try {
      return readFileSync(path(name));
    } catch (error) {
      return error;
    }
  };
  expect(ioError('read', path('circle'), thrown('circle')).message).toMatch(/: the link leads to itself$/);
  const refused: unknown = await readRegular(path('link')).catch((error: unknown) => error);
  expect(ioError('read', path('link'), refused).message).toMatch(/links are not followed there$/);
});
