import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { BLOCKS_SOURCE, blocksSource, declaredBlocks, REQUEST_SCHEMA, withBlockLines } from './blocks.ts';
import { DECLARATION, declareSettings, pastSettings, readSchema } from './declaration.ts';
import { DOCUMENTS, documentTypes } from './documents.ts';
import { profileSchema } from './profile.ts';
import { fieldsSource, flagsSource, pastSource, settingsTypes } from './typescript.ts';
import { validatorSource, validatorTypes } from './validators.ts';

const VALIDATOR = 'src/settings/validators/settings-v19.gen';

/**
 * Writes all files generated from the schemas except `docs/settings.md`, which `docs.ts` writes. Each file is rewritten only when its text changes.
 */
async function generate(): Promise<void> {
  const schema = readSchema(DECLARATION);
  const declared = declareSettings();
  const blocks = declaredBlocks();
  write('src/settings/settings.gen.ts', await settingsTypes(schema, declared));
  write('src/settings/fields.gen.ts', fieldsSource(declared, blocks));
  write('src/settings/past.gen.ts', pastSource(pastSettings()));
  write('cli/arguments/flags.gen.ts', flagsSource(declared));
  write(BLOCKS_SOURCE, await blocksSource(blocks));
  write(REQUEST_SCHEMA, withBlockLines(readFileSync(REQUEST_SCHEMA, 'utf8'), blocks));
  write('schemas/profile.json', `${JSON.stringify(profileSchema(schema, blocks), null, 2)}\n`);
  for (const [name, file] of Object.entries(DOCUMENTS))
    write(file, await documentTypes(name as keyof typeof DOCUMENTS));
  // The only document whose shape the program validates itself; the other schemas are for readers, editors and tests.
  write(`${VALIDATOR}.js`, await validatorSource(schema));
  write(`${VALIDATOR}.d.ts`, validatorTypes());
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  writeFileSync(file, text);
  console.log(`wrote ${file}`);
}

await generate();
