import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { scriptedServer } from '../helpers/scripted-server.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

interface Bad {
  content: string | Buffer;
  /** `line:column` of the first finding. */
  at: string;
  /** A part of the advice. */
  says: RegExp;
}

const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]'];
for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh', 'hi'].map((pair) => [pair[0], pair[1]])) {
  bomb.push(`${to}: &${to} [${Array(9).fill(`*${from}`).join(', ')}]`);
}

const BAD: Record<string, Bad> = {
  'unknown key': { content: 'version: 19\nkubernetis: {}\n', at: '2:1', says: /did you mean kubernetes\?/ },
  'wrong type': { content: 'version: 19\nkubernetes:\n  enabled: 7\n', at: '3:12', says: /expected true or false/ },
  'out of range': { content: 'version: 19\nkubernetes: { port: 65536 }\n', at: '2:21', says: /from 1 to 65535/ },
  'not of the list': {
    content: 'version: 19\ncontainerEngine: { name: mobi }\n',
    at: '2:26',
    says: /did you mean moby\?/,
  },
  'duplicate key': { content: 'version: 19\nimages: {}\nimages: {}\n', at: '3:1', says: /images/ },
  'two documents': { content: 'version: 19\n---\nversion: 19\n', at: '2:1', says: /a file may contain only one/ },
  'empty file': { content: '', at: '1:1', says: /empty/ },
  'only a comment': { content: '# nothing\n', at: '1:1', says: /empty/ },
  '10 MB': { content: Buffer.alloc(10 * 1024 * 1024, 'a: b\n'), at: '1:1', says: /10\.0 MiB; at most 1 MiB/ },
  'alias bomb': { content: `${bomb.join('\n')}\nversion: 19\n`, at: '', says: /alias/i },
  __proto__: { content: '{"version": 19, "__proto__": {"polluted": true}}', at: '1:17', says: /__proto__/ },
  'not UTF-8': { content: Buffer.from([0x76, 0x3a, 0x20, 0xff, 0x0a]), at: '1:4', says: /not UTF-8/ },
  'a syntax error': { content: 'version: 19\nimages: {\n', at: '', says: /\S/ },
  'a list': { content: '- version: 19\n', at: '1:1', says: /must be a mapping, not a list/ },
  'no version': { content: 'images: {}\n', at: '1:1', says: /version is missing/ },
  'version 0': { content: 'version: 0\n', at: '1:10', says: /an integer from 1 to 19/ },
  'version "19"': { content: 'version: "19"\n', at: '1:10', says: /an integer from 1 to 19/ },
  'version 2.5': { content: 'version: 2.5\n', at: '1:10', says: /an integer from 1 to 19/ },
  'version 99': { content: 'version: 99\n', at: '1:10', says: /99 is newer than 19/ },
  'an older shape with a mistake': {
    content: 'version: 4\nkubernetes:\n  numberCPUs: none\n',
    at: '3:15',
    says: /an integer/,
  },
};

const COMMANDS = ['validate', 'plan', 'diff', 'apply'] as const;

describe.each(COMMANDS)('%s', (command) => {
  test.each(Object.entries(BAD))('%s: exit 3 with position and advice, and nothing is sent', async (_name, bad) => {
    await using server = await scriptedServer(() => undefined);
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'p.yaml'), bad.content);
    const { exit, out, err } = await rdctl([command, '-f', 'p.yaml'], { env: server.env, cwd });
    expect(exit).toBe(3);
    const lines = `${out}${err}`.split('\n').filter((line) => line.startsWith(`p.yaml:${bad.at}`));
    expect(lines).toContainEqual(expect.stringMatching(bad.says));
    for (const line of lines) expect(line).toMatch(/^p\.yaml:\d+:\d+: /);
    expect(server.received).toEqual([]);
  });

  test.each([
    ['a missing file', 'nope.yaml', /nope\.yaml could not be read: no such file or directory/],
    ['a directory', 'folder', /folder could not be read: it is a directory/],
  ])('%s: exit 1, and nothing is sent', async (_name, file, says) => {
    await using server = await scriptedServer(() => undefined);
    const cwd = temporaryDirectory();
    mkdirSync(join(cwd, 'folder'));
    const { exit, out, err } = await rdctl([command, '-f', file], { env: server.env, cwd });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(says);
    expect(err).toContain('Specify a readable file, or - for standard input.');
    expect(server.received).toEqual([]);
  });

  test('without a profile: usage, exit 1', async () => {
    const { exit, out, err } = await rdctl([command]);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/Usage:/);
  });
});

test('the prototype of objects is not changed', async () => {
  const { exit } = await rdctl(['validate', '-f', '-'], { stdin: '{"version":19,"__proto__":{"polluted":true}}' });
  expect(exit).toBe(3);
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
});

test('reports all errors at once, as text and as a document', async () => {
  const stdin = 'version: 19\nimages: { showAll: 1 }\ncontainers: { nam: x }\nkubernetes: { port: 0 }\n';
  const text = await rdctl(['validate', '-f', '-'], { stdin });
  expect(text.out.split('\n').filter((line) => /^<stdin>:[234]:\d+: /.test(line))).toHaveLength(3);
  const json = await rdctl(['validate', '-f', '-', '-o', 'json'], { stdin });
  expect(json.exit).toBe(3);
  expect(JSON.parse(json.out)).toMatchObject({
    kind: 'Validation',
    valid: false,
    files: ['<stdin>'],
    findings: [{ line: 2, pointer: '/images/showAll' }, { line: 3 }, { line: 4 }],
  });
});

test('a valid profile is reported on stderr, with exit 0', async () => {
  const { exit, out, err } = await rdctl(['validate', '-f', 'examples/moby.yaml']);
  expect({ exit, out, err }).toEqual({ exit: 0, out: '', err: 'examples/moby.yaml: valid profile\n' });
});
