import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/json.ts';
import { LONG } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { toolAt } from '../helpers/tool-home.ts';

const EFFECT = { lima: 'restart', wsl: 'restart' };

/** All that declares the block. */
const SCHEMA = {
  title: 'SampleOptions',
  description: 'A block that exists in this test alone.',
  type: 'object',
  additionalProperties: false,
  'x-rd-part': 'engine',
  properties: {
    level: { description: 'How much.', type: 'integer', minimum: 0, maximum: 9, default: 0, 'x-rd-effect': EFFECT },
    logs: {
      description: 'How logs are kept.',
      type: 'object',
      additionalProperties: false,
      properties: {
        driver: {
          description: 'Where.',
          type: 'string',
          enum: ['local', 'none'],
          default: 'local',
          'x-rd-effect': EFFECT,
        },
      },
    },
    labels: {
      description: 'Labels by name.',
      type: 'object',
      additionalProperties: { type: 'string' },
      default: {},
      'x-rd-effect': { lima: 'live', wsl: 'live' },
    },
    absent: { description: 'What no driver has.', type: 'boolean', default: false, 'x-rd-effect': EFFECT },
  },
};

/** All that it has an effect by: what a driver says of each field. */
const EFFECTS = ['level', 'logs.driver', 'labels'].map((name) => `  'sample.${name}': enforced,\n`).join('');

/** A tool with the block, built from a copy of the sources with the schema, its line in the table of blocks and its effects. */
async function toolWithBlock() {
  const folder = temporaryDirectory();
  for (const each of ['cli', 'src', 'profiles', 'schemas', 'package.json', 'tsconfig.json', 'run.mjs'])
    cpSync(each, join(folder, each), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'schemas/sample.json'), JSON.stringify(SCHEMA));
  insert(
    join(folder, 'schemas/gen/blocks.ts'),
    /(?<=const BLOCKS: .*= \[)/,
    "{ name: 'sample', schema: 'schemas/sample.json' },",
  );
  insert(join(folder, 'src/drivers/machines/simulated/index.ts'), /(?<=SUPPORT: SupportMatrix = \{\n)/, EFFECTS);
  const node = async (...args: string[]) => {
    const ended = promisify(execFile)(process.execPath, args, { cwd: folder });
    await ended.catch(({ stdout, stderr }) => expect.fail(`${args.join(' ')}: ${stdout}${stderr}`));
  };
  await node('run.mjs', 'schemas/gen/main.ts');
  mkdirSync(join(folder, 'docs'));
  await node('run.mjs', 'schemas/gen/docs.ts');
  writeFileSync(
    join(folder, 'tsconfig.product.json'),
    JSON.stringify({ extends: './tsconfig.json', include: ['cli', 'src', 'profiles', 'schemas'] }),
  );
  // All of the product, which takes a minute.
  if (LONG) await node('node_modules/typescript/bin/tsc', '-p', 'tsconfig.product.json');
  const outfile = join(folder, 'rdctl.cjs');
  await build({
    ...{ entryPoints: [join(folder, 'cli/main.ts')], outfile, absWorkingDir: folder },
    ...{ bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'error' },
  });
  return { folder, outfile };
}

function insert(file: string, place: RegExp, text: string): void {
  const before = readFileSync(file, 'utf8');
  const after = before.replace(place, text);
  if (after === before) throw new Error(`${file} has no ${place}`);
  writeFileSync(file, after);
}

function profile(sample: JsonObject, more: JsonObject = {}): string {
  return JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', settings: { version: 19 }, sample, ...more });
}

test('a new block is a schema and its effects, and nothing else', async () => {
  const { folder, outfile } = await toolWithBlock();
  const home = temporaryDirectory();
  const tool = toolAt(outfile, home);
  const changes = async (document: string) => {
    const { out } = await tool(['plan', '-f', '-', '-o', 'json'], document);
    return JSON.parse(out).changes;
  };

  // An editor knows it.
  const editor = JSON.parse(readFileSync(join(folder, 'schemas/profile.json'), 'utf8'));
  expect(editor.properties.sample.properties).toMatchObject({
    level: { description: 'How much.', maximum: 9 },
    logs: { properties: { driver: { enum: ['local', 'none'] } } },
  });
  expect(editor.properties.prune.items.enum).toContain('sample.labels');

  // The reference page has it.
  expect(readFileSync(join(folder, 'docs/settings.md'), 'utf8')).toContain('## `sample.logs.driver`');

  // It is validated.
  const wrong = await tool(
    ['validate', '-f', '-'],
    profile({ level: 10, labels: { a: 1 }, log: {}, logs: { driver: 'x' } }),
  );
  expect(wrong.exit).toBe(3);
  for (const part of ['/sample/level', '/sample/labels/a', '/sample/log)', 'did you mean logs?', '/sample/logs/driver'])
    expect(wrong.out + wrong.err).toContain(part);

  // It is planned with what it costs, and applied and stored.
  const desired = profile({ level: 3, labels: { a: 'x', b: 'y' }, logs: { driver: 'none' } });
  expect(await tool(['start', '--driver', 'simulated'])).toMatchObject({ exit: 0 });
  expect(await changes(desired)).toMatchObject([
    { path: 'sample.level', action: 'update', before: 0, after: 3, severity: 'restart' },
    {
      path: 'sample.logs.driver',
      before: 'local',
      after: 'none',
      severity: 'restart',
      reason: 'requires a restart of the engine',
    },
    { path: 'sample.labels', key: 'a', action: 'create', after: 'x', severity: 'live' },
    { path: 'sample.labels', key: 'b', action: 'create', after: 'y' },
  ]);
  const applied = await tool(['apply', '-f', '-'], desired);
  expect(applied, applied.err).toMatchObject({ exit: 0 });
  const stored = JSON.parse(readFileSync(join(home, 'state/state.json'), 'utf8'));
  expect(stored.sample).toEqual({ level: 3, logs: { driver: 'none' }, labels: { a: 'x', b: 'y' }, absent: false });
  expect(await changes(desired)).toEqual([]);

  // It is compared and pruned by entry.
  expect(await changes(profile({ labels: { b: 'z' } }, { prune: ['sample.labels'] }))).toMatchObject([
    { path: 'sample.labels', key: 'b', action: 'update', before: 'y', after: 'z' },
    { path: 'sample.labels', key: 'a', action: 'delete', before: 'x' },
  ]);

  // It is explained.
  const explained = JSON.parse((await tool(['explain', 'sample.level', '-o', 'json'])).out);
  expect(explained).toMatchObject({ value: 3, from: 'stored', effect: 'restart', driver: { level: 'enforced' } });
  const section = JSON.parse((await tool(['explain', 'sample.logs', '-o', 'json'])).out);
  expect(section.settings).toMatchObject([{ path: 'sample.logs.driver', value: 'none', isDefault: false }]);

  // What no driver has is refused.
  expect(await changes(profile({ absent: true }))).toMatchObject([
    { path: 'sample.absent', blocked: { by: 'unsupported' } },
  ]);

  // It is in the history, with its place in the profile, and leads back.
  const { entries } = JSON.parse((await tool(['history', '-o', 'json'])).out);
  const source = { file: '-', line: 1 };
  expect(entries.at(-1).changes).toContainEqual({ path: 'sample.level', before: 0, after: 3, source });
  expect(await tool(['rollback'])).toMatchObject({ exit: 0 });
  const back = JSON.parse(readFileSync(join(home, 'state/state.json'), 'utf8'));
  expect(back.sample).toEqual({ level: 0, logs: { driver: 'local' }, labels: {}, absent: false });
  expect(await tool(['shutdown'])).toMatchObject({ exit: 0 });
});
