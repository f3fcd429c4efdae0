import type { JsonObject } from '../../src/json.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, removeLeaf } from '../../src/settings/leaf-paths.ts';
import { copyOfObject } from '../../src/settings/own.ts';

/** The settings without their secrets; a warning names each that was not empty. */
export function withoutSecrets(settings: JsonObject): { settings: JsonObject; warnings: string[] } {
  const kept = copyOfObject(settings);
  const warnings: string[] = [];
  for (const { path, sensitive } of FIELDS) {
    const value = sensitive ? leafAt(kept, path) : undefined;
    if (value === undefined) continue;
    removeLeaf(kept, path);
    if (value !== '')
      warnings.push(`${path} is a secret and was left out; give it with --input or --body to write it.`);
  }
  return { settings: kept, warnings };
}
