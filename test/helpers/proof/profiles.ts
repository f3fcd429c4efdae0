import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll } from 'vitest';
import type { ExportOptions } from '../../../profiles/formats/format.ts';
import { EXPORTERS } from '../../../profiles/formats/index.ts';
import { deploymentTree } from '../../../profiles/formats/tree.ts';
import type { JsonObject } from '../../../src/json.ts';
import { FLEET_VERSIONS, fullProfileArbitrary, profileArbitrary } from '../fleet-arbitrary.ts';
import { cannotHold, heldTexts } from '../format-limits.ts';
import { testSeed } from '../seed.ts';

export const GOLDEN = 'test/golden/profiles';
/** Every setting, with a value other than its default. */
export const FULL: JsonObject = JSON.parse(readFileSync(join(GOLDEN, 'full.settings.json'), 'utf8'));
export const LOCKED: ExportOptions = { part: 'locked', hive: 'hklm' };
/** Appears in the names of the tests that use it. */
export const SEED = testSeed();
export const RANDOM = 200;
/** Every UTF-16 unit except NUL. */
export const UNITS = Array.from({ length: 0xffff }, (_, index) => String.fromCharCode(index + 1));

/** Profiles of any version that the format can hold, some of them with every setting. */
export function randomProfiles(format: string, count = RANDOM): JsonObject[] {
  const texts = heldTexts(format);
  const some = fc.oneof(...FLEET_VERSIONS.map((version) => profileArbitrary(version, texts)));
  const all = fc.oneof(...FLEET_VERSIONS.map((version) => fullProfileArbitrary(version, texts)));
  const profile = fc.oneof({ weight: 4, arbitrary: some }, { weight: 1, arbitrary: all });
  const held = profile.filter((each) => cannotHold(format, each).length === 0);
  return fc.sample(held, count);
}

/** As the library exports it. */
export async function exported(format: string, profile: JsonObject, options = LOCKED): Promise<string> {
  const exporter = await EXPORTERS[format]?.();
  if (!exporter) throw new Error(`no exporter ${format}`);
  return exporter.text(await deploymentTree(profile), options);
}

export function goldens(suffix: string): string[] {
  return readdirSync(GOLDEN)
    .filter((name) => name.endsWith(suffix))
    .map((name) => join(GOLDEN, name));
}

/** Writes files into their own folder, which is removed after the tests of the file. */
export function fileWriter(): (texts: readonly (string | Buffer)[], suffix: string) => string[] {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rdctl-proof-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return (texts, suffix) => {
    const own = mkdtempSync(join(folder, 'files-'));
    return texts.map((text, index) => {
      const path = join(own, `${index}${suffix}`);
      writeFileSync(path, text);
      return path;
    });
  };
}
