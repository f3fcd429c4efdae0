import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DECLARATION, declaredSettings, readSchema } from './declaration.ts';
import { MACHINE_DECLARATION, machineOptionsSource } from './machine.ts';
import { profileSchema } from './profile.ts';
import { fieldsSource, flagsSource, settingsTypes } from './typescript.ts';
import { membersSource, validatorName, validatorSource, validatorTypes } from './validators.ts';

const VALIDATORS = 'src/settings/validators';

/** Writes everything that follows from the schemas, except `docs/settings.md`: see `docs.ts`. Each file is rewritten only when its text changes. */
async function generate(): Promise<void> {
  const schema = readSchema(DECLARATION);
  const declared = declaredSettings();
  write('src/settings/settings.gen.ts', await settingsTypes(schema, declared));
  write('src/settings/fields.gen.ts', fieldsSource(declared));
  write('cli/arguments/flags.gen.ts', flagsSource(declared));
  const machine = readSchema(MACHINE_DECLARATION);
  write('src/settings/machine-options.gen.ts', await machineOptionsSource(machine));
  write('schemas/profile.json', `${JSON.stringify(profileSchema(schema, machine), null, 2)}\n`);
  await generateValidators();
}

async function generateValidators(): Promise<void> {
  const files = ['schemas/settings', 'schemas']
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name).replaceAll('\\', '/')))
    .filter((file) => file.endsWith('.json'));
  const schemas = files.map(readSchema);
  const expected = new Set(['check.ts']);
  for (const [index, file] of files.entries()) {
    const name = validatorName(file);
    const schema = schemas[index];
    if (!schema) continue;
    const older = file.startsWith('schemas/settings/') && file !== DECLARATION;
    const source = await validatorSource(schema, schemas);
    write(`${VALIDATORS}/${name}.gen.js`, older ? `${source}${membersSource(schema)}` : source);
    write(
      `${VALIDATORS}/${name}.gen.d.ts`,
      validatorTypes(
        file === DECLARATION
          ? { name: 'Settings', from: '../settings.gen.ts' }
          : { name: 'JsonObject', from: '../../json.ts' },
        older,
      ),
    );
    expected.add(`${name}.gen.js`).add(`${name}.gen.d.ts`);
  }
  for (const name of readdirSync(VALIDATORS)) if (!expected.has(name)) rmSync(join(VALIDATORS, name));
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  writeFileSync(file, text);
  console.log(`wrote ${file}`);
}

await generate();
