import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { documentationPage } from '../../../src/features/diagnostics/diagnostics.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

function installed(...files: string[]): string {
  const root = join(temporaryDirectory(), 'a b');
  for (const folder of ['dist', 'docs']) mkdirSync(join(root, folder), { recursive: true });
  for (const file of files) writeFileSync(join(root, file), '');
  return root;
}

test('a page is a URL that a browser can open, also when the program is started through a link', () => {
  const root = installed('dist/rdctl.cjs', 'docs/diagnostics.md');
  const link = join(root, 'link');
  symlinkSync(join(root, 'dist', 'rdctl.cjs'), link);
  const page = pathToFileURL(join(root, 'docs', 'diagnostics.md')).href;
  expect(page).toContain('/a%20b/docs/');
  expect(documentationPage('diagnostics.md', ['node', join(root, 'dist', 'rdctl.cjs')])).toBe(page);
  expect(documentationPage('diagnostics.md', ['node', link])).toBe(page);
});

test('there is no URL without the program or the page', () => {
  const root = installed('dist/rdctl.cjs');
  expect(documentationPage('diagnostics.md', ['node', join(root, 'dist', 'rdctl.cjs')])).toBeUndefined();
  expect(documentationPage('diagnostics.md', ['node', join(root, 'gone')])).toBeUndefined();
  expect(documentationPage('diagnostics.md')).toBeUndefined();
});
