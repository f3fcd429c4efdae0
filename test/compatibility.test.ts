import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../cli/commands.ts';
import { ENDPOINTS } from '../src/api/endpoints.ts';

/** The command table of the specification; further commands are our own or the compatible application's. */
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

/** What stands in backquotes. */
function quoted(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
}

/** Paths that a table names; one with `*` has to name something by its folder. */
function exists(path: string): boolean {
  return existsSync(path.includes('*') ? path.slice(0, path.lastIndexOf('/')) : path);
}

describe('the tables of what is compatible', () => {
  test('every endpoint is there, in the order of the listings, with rows that call it', () => {
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

  test('every command of the specification is there, exists, and has rows', () => {
    const table = rows('Commands and their tests');
    expect(table.map(([command]) => quoted(command)[0])).toEqual(SPECIFIED);
    const files = ['test/cli/command-rows.ts', 'test/cli/matrix.test.ts'];
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
