import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import standalone from 'ajv/dist/standalone/index.js';
import addFormats from 'ajv-formats';
import { build } from 'esbuild';
import type { JsonObject } from '../../src/json.ts';
import { WORDS } from './declaration.ts';
import { BANNER } from './typescript.ts';

/** Returns the source of a validator: one ES module without imports, so that no schema is compiled when a command starts. */
export async function validatorSource(schema: JsonObject): Promise<string> {
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
  return bundleHelpers(standalone(ajv, ajv.compile(schema)));
}

export function validatorTypes(): string {
  return `${BANNER}import type { Settings } from '../settings.gen.ts';
import type { ShapeCheck } from './check.ts';

export const validate: ShapeCheck<Settings>;
`;
}

/** Inlines ajv's helpers: its ES output refers to them by `require`. */
async function bundleHelpers(code: string): Promise<string> {
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
