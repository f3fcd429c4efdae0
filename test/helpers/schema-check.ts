import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type AnySchema, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { WORDS } from '../../schemas/gen/declaration.ts';

const FOLDER = 'schemas';

/** Checks documents by one of the published schemas: `plan`, `status`, `event`, … */
export function schemaCheck(name: string): ValidateFunction {
  const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, allowUnionTypes: true });
  addFormats.default(ajv);
  for (const word of WORDS) ajv.addKeyword({ keyword: word });
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.json') && file !== `${name}.json`);
  for (const file of [...files, join('settings', 'v19.json')]) ajv.addSchema(read(file));
  return ajv.compile(read(`${name}.json`));
}

function read(file: string): AnySchema {
  return JSON.parse(readFileSync(join(FOLDER, file), 'utf8'));
}
