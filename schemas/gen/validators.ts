import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import standalone from 'ajv/dist/standalone/index.js';
import addFormats from 'ajv-formats';
import { build } from 'esbuild';
import { isObject, type JsonObject } from '../../src/json.ts';
import { WORDS } from './declaration.ts';
import { BANNER } from './typescript.ts';

/**
 * Source of a validator for one schema: one ES module without imports, so that a caller loads that validator alone and no
 * schema is compiled when a command starts. `siblings` are the schemas that it may refer to by `$id`.
 */
export async function validatorSource(schema: JsonObject, siblings: readonly JsonObject[]): Promise<string> {
  const ajv = new Ajv2020({
    allErrors: true,
    messages: false,
    strict: true,
    strictRequired: false,
    allowUnionTypes: true,
    code: { source: true, esm: true, lines: true },
  });
  addFormats.default(ajv);
  for (const word of WORDS) ajv.addKeyword({ keyword: word });
  for (const sibling of siblings) if (sibling.$id !== schema.$id) ajv.addSchema(sibling);
  return selfContained(standalone(ajv, ajv.compile(schema)));
}

/** `settings/v19.json` → `settings-v19`. */
export function validatorName(file: string): string {
  return file
    .replace(/^schemas\//, '')
    .replace(/\.json$/, '')
    .replaceAll('/', '-');
}

/** With `members`, the file also holds the names that the schema knows. */
export function validatorTypes(type: { name: string; from: string }, members: boolean): string {
  return `${BANNER}import type { ${members ? 'Members, ' : ''}ShapeCheck } from './check.ts';
${type.from ? `import type { ${type.name} } from '${type.from}';\n` : ''}
${members ? 'export const members: Members;\n' : ''}export const validate: ShapeCheck<${type.name}>;
`;
}

/** Source of the names that a schema of settings knows, for suggestions. */
export function membersSource(schema: JsonObject): string {
  return `export var members=${JSON.stringify(membersOf(schema)).replace(/.{1,150}[{,]/g, '$&\n')};\n`;
}

function membersOf({ properties }: JsonObject): JsonObject | true {
  if (!isObject(properties)) return true;
  return Object.fromEntries(
    Object.entries(properties).map(([name, below]) => [name, isObject(below) ? membersOf(below) : true]),
  );
}

/** Bundles ajv's helpers in: its ES output refers to them by `require`. */
async function selfContained(code: string): Promise<string> {
  const folder = mkdtempSync(join(resolve('node_modules'), '.gen-'));
  try {
    const entry = join(folder, 'validator.js');
    writeFileSync(entry, code);
    const result = await build({
      entryPoints: [entry],
      absWorkingDir: folder,
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'neutral',
      mainFields: ['main'],
      target: 'node20',
      minifySyntax: true,
      minifyWhitespace: true,
      minifyIdentifiers: true,
      legalComments: 'none',
      lineLimit: 160,
      logLevel: 'warning',
    });
    const text = result.outputFiles[0]?.text ?? '';
    const imported = Object.values(result.metafile.outputs).flatMap((output) => output.imports);
    if (imported.length > 0 || /\bnew Function\b|\beval\(/.test(text)) throw new Error('validator: not self-contained');
    return BANNER + text;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
