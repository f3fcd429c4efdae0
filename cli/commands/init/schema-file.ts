import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RdError } from '../../../src/errors.ts';
import { isObject, parseJson } from '../../../src/json.ts';
import { writeOutFile } from '../../arguments/files.ts';

/** The name of the schema beside a profile. */
export const SCHEMA_FILE = 'rdctl.schema.json';

/**
 * Writes the schema of profiles into the directory of a profile. An earlier one is replaced; a file with other content is not.
 * @throws RdError `ERR_IO`.
 */
export async function writeSchemaBeside(profile: string): Promise<void> {
  const { default: profileSchema } = await import('../../../schemas/profile.json');
  const path = join(dirname(profile), SCHEMA_FILE);
  const there = await readFile(path, 'utf8').catch(() => undefined);
  const schema = there === undefined ? undefined : parseJson(there);
  if (there !== undefined && !(isObject(schema) && schema.$id === profileSchema.$id)) {
    throw new RdError('ERR_IO', `${path} exists and is not the schema of profiles`, {
      advice: 'Move it away, or leave out --with-schema.',
    });
  }
  await writeOutFile(path, `${JSON.stringify(profileSchema, null, 2)}\n`, { mode: 0o644, replace: true });
}
