import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';

const INDEX = 'docs/README.md';
const DOCS = ['docs', 'docs/internals'].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`),
);
const TOP = readdirSync('.').filter((name) => name.endsWith('.md'));
const DOCUMENTS = [...TOP, ...DOCS, 'examples/README.md'];

interface Link {
  /** As it is written. */
  text: string;
  /** From the root of the repository. */
  file: string;
  anchor: string | undefined;
}

const withoutCode = (text: string) => text.replace(/^( *)```[\s\S]*?\n\1```$/gm, '').replace(/`[^`\n]*`/g, '');

/** Links and pictures that point to files of this repository. */
function linksOf(document: string): Link[] {
  const text = withoutCode(readFileSync(document, 'utf8'));
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [path = '', anchor] = target.split('#');
    return [{ text: target, file: path === '' ? document : normalize(join(dirname(document), path)), anchor }];
  });
}

/** The anchors of headings, as GitHub generates them. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of text.replace(/^( *)```[\s\S]*?\n\1```$/gm, '').matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');
    let unique = slug;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${slug}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

function broken({ file, anchor }: Link): boolean {
  if (!existsSync(file)) return true;
  if (anchor === undefined) return false;
  return statSync(file).isDirectory() || !anchorsOf(readFileSync(file, 'utf8')).has(anchor);
}

/** Files and folders of this repository named in code: `src/plan/`, `cli/commands.ts`, `test/e2e/qemu-*.test.ts`, `home.ts`. */
function pathsIn(text: string): string[] {
  const named = text.match(/`(?:(?:src|cli|profiles|schemas|test|bench|docs|examples)\/[^`\s]*|[a-z-]+\.ts)`/g) ?? [];
  // Placeholders such as `test/FILE.test.ts` are in capitals.
  return named.map((code) => code.slice(1, -1)).filter((path) => !/[A-Z]{3,}/.test(path));
}

const SOURCES = ['src', 'cli', 'profiles', 'schemas', 'test', 'bench'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => basename(path)),
);

/** `*` stands for any part of a file name; a bare name may be in any folder. */
function exists(path: string): boolean {
  if (!path.includes('/')) return SOURCES.includes(path);
  if (!path.includes('*')) return existsSync(path);
  const pattern = new RegExp(`^${basename(path).replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
  return readdirSync(dirname(path)).some((name) => pattern.test(name));
}

test.each(DOCUMENTS)('every file and folder that %s names exists', (document) => {
  const text = readFileSync(document, 'utf8').replace(/^( *)```[\s\S]*?\n\1```$/gm, '');
  expect(pathsIn(text).filter((path) => !exists(path))).toEqual([]);
});

test.each(DOCUMENTS)('every link of %s resolves', (document) => {
  expect(linksOf(document).filter(broken)).toEqual([]);
});

describe('the index of the documentation', () => {
  test('lists every document', () => {
    const linked = new Set(linksOf(INDEX).map(({ file }) => file));
    expect(DOCS.filter((document) => document !== INDEX && !linked.has(document))).toEqual([]);
  });

  test('is linked from the README', () => {
    expect(linksOf('README.md').map(({ file }) => file)).toContain(INDEX);
  });
});

test('the check detects a missing file, a missing anchor, a missing path and equal headings', () => {
  expect(
    pathsIn('`src/plan/`, `plan.ts`, `cli/none.ts`, `none.ts`, `src/FILE.ts` and src/other').filter(
      (path) => !exists(path),
    ),
  ).toEqual(['cli/none.ts', 'none.ts']);
  expect(exists('test/docs/lin*.test.ts') && !exists('test/docs/none*.ts')).toBe(true);
  expect(broken({ text: '', file: 'docs/none.md', anchor: undefined })).toBe(true);
  expect(broken({ text: '', file: 'README.md', anchor: 'none' })).toBe(true);
  expect(broken({ text: '', file: 'docs', anchor: 'none' })).toBe(true);
  expect(broken({ text: '', file: 'README.md', anchor: 'the-first-minute' })).toBe(false);
  expect([...anchorsOf('# A `b_c` (d)!\n\n## Same\n\n## Same\n')]).toEqual(['a-b_c-d', 'same', 'same-1']);
});
