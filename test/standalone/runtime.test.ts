import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { LGPL_COMMITS, RUNTIME, RUNTIME_LIBRARIES } from '../../release/runtime-libraries.ts';
import { runtimeProgram } from '../../release/runtime-package.ts';
import { ownTarget } from '../../release/targets.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const DOCUMENT = 'docs/internals/standalone.md';
type Answers = Record<string, unknown>;

/** Names in the first column of the table of differences. */
function documented(): string[] {
  const [, table = ''] = readFileSync(DOCUMENT, 'utf8').split('## What differs from Node\n');
  return [...(table.split(/^## /m)[0] ?? '').matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = '']) => name);
}

test('the runtime of the file answers each probe as Node does, but for the differences in the document', async () => {
  const folder = temporaryDirectory();
  const probes = join(folder, 'probes.cjs');
  await build({
    entryPoints: ['test/standalone/probes.ts'],
    outfile: probes,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    logLevel: 'error',
  });
  const target = ownTarget();
  if (!target) throw new Error('there is no runtime for this computer');
  const compiled = join(folder, 'probes');
  execFileSync(runtimeProgram(target), ['build', '--compile', '--bytecode', probes, '--outfile', compiled], {
    stdio: 'ignore',
  });
  const answers = async (program: string, ...argv: string[]): Promise<Answers> =>
    JSON.parse((await promisify(execFile)(program, argv)).stdout);
  const [node, other] = await Promise.all([answers(process.execPath, probes), answers(compiled)]);
  expect(Object.keys(other)).toEqual(Object.keys(node));
  const differing = Object.keys(node).filter((name) => JSON.stringify(node[name]) !== JSON.stringify(other[name]));
  expect(differing.sort()).toEqual(documented().sort());
});

/** What `process.versions` names that is no library inside: versions of interfaces and of languages, and names of what is listed otherwise. */
const LISTED_AS: Readonly<Record<string, string | undefined>> = {
  ares: 'c-ares',
  lolhtml: 'lol-html',
  lshpack: 'ls-hpack',
  usockets: 'uSockets',
  uv: 'libuv',
  uwebsockets: 'uWebSockets',
  webkit: 'JavaScriptCore',
  zlib: 'zlib-ng',
};
const NO_LIBRARY = ['bun', 'modules', 'napi', 'node', 'openssl', 'typescript', 'unicode', 'v8', 'zig'];

test('the list of libraries has each that the runtime names, and the commits of those under the LGPL', () => {
  const target = ownTarget();
  if (!target) throw new Error('there is no runtime for this computer');
  const asked = execFileSync(runtimeProgram(target), ['-p', 'JSON.stringify([Bun.revision, process.versions])'], {
    encoding: 'utf8',
  });
  const [revision, versions]: [string, Record<string, string>] = JSON.parse(asked);
  expect(revision).toBe(RUNTIME.revision);
  expect(versions).toMatchObject(LGPL_COMMITS);
  const listed = RUNTIME_LIBRARIES.map(({ name }) => name);
  const named = Object.keys(versions).filter((name) => !NO_LIBRARY.includes(name));
  expect(named.map((name) => LISTED_AS[name] ?? name).filter((name) => !listed.includes(name))).toEqual([]);
});
