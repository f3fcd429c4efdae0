import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../cli/commands.ts';
import { ENDPOINTS } from '../src/api/routes/listings.ts';

/** The command table of the specification; other commands are ours or those of the compatible application. */
const SPECIFIED = [
  ...['api', 'completion', 'create-profile', 'extension', 'factory-reset', 'help', 'info', 'list-settings', 'reset'],
  ...['set', 'shell', 'shutdown', 'snapshot', 'start', 'version'],
];

const document = readFileSync('docs/compatibility.md', 'utf8');

/** Rows of the table below a heading, as their cells. */
function rows(heading: string): string[][] {
  const [, after = ''] = document.split(`\n## ${heading}\n`);
  const [section = ''] = after.split('\n## ');
  const lines = section.split('\n').filter((line) => line.startsWith('| `'));
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const DIFFERENCES = ['API', 'Settings file and deployment profiles', 'Command line', 'Environment of the user'];

/** Cells of every difference below a heading: topic, there, here, why. */
function differences(heading: string): string[][] {
  const [, after = ''] = document.split(`\n## ${heading}\n`);
  const [, , ...lines] = (after.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('|'));
  // A bar inside backquotes does not end a cell.
  return lines.map((line) =>
    line
      .replaceAll(/`[^`]*`/g, (code) => code.replaceAll('|', '¦'))
      .split('|')
      .slice(1, -1),
  );
}

/** All of our source text. */
function sources(...folders: string[]): string {
  return folders
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)))
    .filter((file) => /\.(?:ts|md)$/.test(file))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
}

/** The anchor of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

/** The texts in backquotes. */
function quoted(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
}

/** The paths that a table names; one with `*` must match by its folder. */
function exists(path: string): boolean {
  return existsSync(path.includes('*') ? path.slice(0, path.lastIndexOf('/')) : path);
}

describe('the tables of differences', () => {
  test.each(DIFFERENCES)('%s: every row names its subject and our behavior, and no row appears twice', (heading) => {
    const table = differences(heading);
    expect(table.length).toBeGreaterThan(5);
    for (const row of table) {
      expect(row, row.join('|')).toHaveLength(4);
      expect(row[0]?.trim(), row.join('|')).not.toBe('');
      expect(row[2]?.trim(), row.join('|')).not.toBe('');
    }
    const topics = table.map(([topic]) => topic);
    expect(topics.filter((topic, index) => topics.indexOf(topic) !== index)).toEqual([]);
  });

  test('every endpoint, header, variable and check named in a table exists', () => {
    const text = DIFFERENCES.flatMap(differences).flat().join('\n');
    const known = sources('src', 'cli', 'schemas');
    const named = (pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, name = '']) => name))];
    const headers = named(/`(Rdctl-[\w-]+)`/g);
    const variables = named(/\b(RDCTL_[A-Z_]+)/g);
    const checks = quoted(differences('API').find(([topic]) => topic?.includes('Checks of our own'))?.[2]);
    expect([headers.length, variables.length, checks.length].every((count) => count > 2)).toBe(true);
    expect([...headers, ...variables, ...checks].filter((name) => !known.includes(name))).toEqual([]);
    const listed = ENDPOINTS.map(({ method, name }) => `${method} /v1/${name}`);
    const ours = named(/`((?:GET|PUT|POST|DELETE) \/v[12]\/[\w/.]+)`/g);
    expect(ours.length).toBeGreaterThan(10);
    expect(ours.filter((name) => !listed.includes(name) && !known.includes(`'${name.split(' ')[1]}'`))).toEqual([]);
  });

  test('links resolve to documents and headings', () => {
    const links = [...document.matchAll(/\]\(([\w-]+\.md)(?:#([\w-]+))?\)/g)];
    expect(links.length).toBeGreaterThan(5);
    for (const [, file = '', anchor] of links) {
      const headings = [...readFileSync(join('docs', file), 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, text = '']) =>
        anchorOf(text),
      );
      if (anchor !== undefined) expect(headings, `${file}#${anchor}`).toContain(anchor);
    }
  });
});

describe('the tables of compatible behavior', () => {
  test('list every endpoint, in listing order, with wire rows that call it', () => {
    const table = rows('Endpoints and their tests');
    expect(table.map(([endpoint]) => quoted(endpoint)[0])).toEqual([
      'GET /',
      'GET /v0',
      'GET /v1',
      ...ENDPOINTS.map(({ method, name }) => `${method} /v1/${name}`),
      'GET /v0/settings',
      'PUT /v0/settings',
      'PUT /v0/shutdown',
    ]);
    for (const [endpoint, files, beside] of table) {
      const [name = ''] = quoted(files);
      const text = readFileSync(join('test/wire/rows', name), 'utf8');
      const [, path = ''] = quoted(endpoint)[0]?.split(' ') ?? [];
      expect(text.includes(path), `${name} has no row for ${path}`).toBe(true);
      expect(quoted(beside).filter((file) => !exists(file))).toEqual([]);
    }
  });

  test('list every command of the specification; each exists and has wire rows', () => {
    const table = rows('Commands and their tests');
    expect(table.map(([command]) => quoted(command)[0])).toEqual(SPECIFIED);
    const files = ['test/cli/command-rows.ts', 'test/cli/matrix.integration.test.ts'];
    const matrix = files.map((file) => readFileSync(file, 'utf8')).join('');
    for (const [command, beside] of table) {
      const [name = ''] = quoted(command);
      expect(COMMANDS.map((entry) => entry.name)).toContain(name);
      expect(matrix.includes(`'${name}'`), `no row for ${name}`).toBe(true);
      expect(quoted(beside)).not.toEqual([]);
      expect(quoted(beside).filter((file) => !exists(file))).toEqual([]);
    }
  });
});
