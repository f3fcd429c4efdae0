import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { holdingOf } from '../../profiles/check/holding.ts';
import { plistText } from '../../profiles/formats/plist.ts';
import { regText } from '../../profiles/formats/reg.ts';
import { type DeploymentTree, deploymentTree } from '../../profiles/formats/tree.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { FLEET_VERSIONS, profileArbitrary } from '../helpers/fleet-arbitrary.ts';
import { anyText } from '../helpers/hostile-text.ts';
import { rounds, runs } from '../helpers/rounds.ts';

const FORMS = [
  ['win32', (tree: DeploymentTree) => regText(tree, 'hklm', 'locked')],
  ['darwin', plistText],
] as const;

/** Whether the exporter writes the settings. */
async function isWritten(settings: JsonObject, write: (tree: DeploymentTree) => string): Promise<boolean> {
  const tree = await deploymentTree(settings);
  try {
    write(tree);
    return true;
  } catch (error) {
    if (!(error instanceof RdError) || error.code !== 'ERR_PROFILE_INVALID') throw error;
    return false;
  }
}

/** With more unsupported texts than usual. */
const value = fc.oneof(
  { weight: 5, arbitrary: anyText() },
  { weight: 1, arbitrary: fc.constantFrom('', 'a\0', 'a\u0001', '\ufffe', 'a\ud800') },
);

/** Names that some case folding makes equal, at the limits of a name. */
const key = fc.oneof(
  anyText(),
  fc.constantFrom(
    '',
    'a',
    'A',
    'ß',
    'ẞ',
    'SS',
    'σ',
    'ς',
    'Σ',
    'ı',
    'I',
    'i',
    'İ',
    'K',
    'k',
    'x'.repeat(255),
    'x'.repeat(256),
  ),
);

describe.each(FORMS)('what profiles of %s cannot hold, according to the check', (platform, write) => {
  test('is what the exporter refuses', async () => {
    const seen = { held: 0, refused: 0 };
    const profile = fc.constantFrom(...FLEET_VERSIONS).chain((version) => profileArbitrary(version, { value, key }));
    await fc.assert(
      fc.asyncProperty(profile, async (settings) => {
        const written = await isWritten(settings, write);
        seen[written ? 'held' : 'refused'] += 1;
        expect(holdingOf(settings)[platform].length === 0).toBe(written);
      }),
      { numRuns: runs(200) },
    );
    expect(seen.held).toBeGreaterThan(rounds(2, 20));
    expect(seen.refused).toBeGreaterThan(rounds(2, 20));
  });

  test.each<[string, JsonObject]>([
    ['an empty name', { WSL: { integrations: { '': true } } }],
    ['a name of 255 units', { WSL: { integrations: { ['x'.repeat(255)]: true } } }],
    ['a name of 256 units', { WSL: { integrations: { ['x'.repeat(256)]: true } } }],
    ['an unpaired surrogate in a name', { WSL: { integrations: { 'a\ud800': true } } }],
    ['names that are one in lower case', { WSL: { integrations: { K: true, k: true } } }],
    ['names that are one in upper case', { WSL: { integrations: { ς: true, σ: true } } }],
    ['names that are one in two letters', { WSL: { integrations: { ß: true, SS: true } } }],
    ['an empty entry', { containerEngine: { allowedImages: { patterns: ['a', ''] } } }],
    ['NUL in an entry', { containerEngine: { allowedImages: { patterns: ['a\0'] } } }],
    ['a control character', { application: { locale: '\u0001' } }],
    ['a number of 33 bits', { kubernetes: { port: 2 ** 32 } }],
    ['the largest number of 32 bits', { kubernetes: { port: 2 ** 32 - 1 } }],
    ['a number below zero', { kubernetes: { port: -1 } }],
  ])('%s', async (_name, members) => {
    const settings = { version: 19, ...members };
    expect(holdingOf(settings)[platform].length === 0).toBe(await isWritten(settings, write));
  });
});
