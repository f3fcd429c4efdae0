import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ATLAS, type AtlasNode } from '../../profiles/check/atlas.ts';
import { ALL, checkProfile } from '../../profiles/check/check.ts';
import type { CheckCell } from '../../profiles/check/finding.ts';
import { holdingOf } from '../../profiles/check/holding.ts';
import { PARTS } from '../../profiles/formats/format.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { downgrade, placeAt } from '../../src/settings/downgrade.ts';
import { PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, removeLeaf, setLeaf } from '../../src/settings/leaf-paths.ts';
import { migrate, versionProblem } from '../../src/settings/migrate.ts';
import { firstReleaseWith, RELEASES } from '../../src/settings/releases.ts';
import { validate } from '../../src/settings/validate.ts';
import { rounds, runs } from '../helpers/rounds.ts';
import { anyPayloadArbitrary, contextOn, payloadArbitrary } from '../helpers/settings-arbitrary.ts';

const LATEST = RELEASES.length - 1;
const partArbitrary = fc.constantFrom(...PARTS);

/** Every path at which some release had a setting, and the sections around them. */
const PATHS: readonly string[] = pathsOf(ATLAS.members.values());

function pathsOf(nodes: Iterable<AtlasNode>): string[] {
  return [...nodes].flatMap((node) =>
    'place' in node ? [node.place.path] : [node.section.path, ...pathsOf(node.section.members.values())],
  );
}

/** Values of right and wrong types at known and unknown paths, with any version. */
function hostileArbitrary(): fc.Arbitrary<JsonObject> {
  const anything: fc.Arbitrary<JsonValue> = fc.oneof(
    fc.constantFrom<JsonValue>(true, false, null, 0, 1, -1, 2.5, '', 'vz', '9p', 'docker', '100GiB', 'v1.30.2', [], {}),
    fc.string({ unit: 'binary' }),
    fc.json().map((text): JsonValue => JSON.parse(text)),
  );
  const version = fc.oneof(fc.integer({ min: 1, max: 20 }), anything);
  const places = fc.array(fc.tuple(fc.oneof(fc.constantFrom(...PATHS), fc.string()), anything), { maxLength: 8 });
  return fc.tuple(fc.option(version, { nil: undefined }), places).map(([number, values]) => {
    const settings: JsonObject = number === undefined ? {} : { version: number };
    for (const [path, value] of values) setLeaf(settings, path, structuredClone(value));
    return settings;
  });
}

function newest(cells: readonly CheckCell[], platform: Platform): CheckCell | undefined {
  return cells.find((cell) => cell.platform === platform && cell.release === RELEASES[LATEST]?.name);
}

describe('a check', () => {
  test('gives every JSON object a verdict that follows from its findings', () => {
    fc.assert(
      fc.property(hostileArbitrary(), partArbitrary, (settings, part) => {
        const before = JSON.stringify(settings);
        const cells = checkProfile([{ part, settings }], ALL);
        expect(cells).toHaveLength(RELEASES.length * PLATFORMS.length);
        const wrong = cells.filter(({ verdict, findings }) => {
          const effects = new Set(findings.map(({ effect }) => effect));
          const expected = effects.has('refused') ? 'rejected' : effects.has('ignored') ? 'partly' : 'accepted';
          return verdict !== expected || new Set(findings).size !== findings.length;
        });
        expect(wrong).toEqual([]);
        expect(JSON.stringify(settings)).toBe(before);
      }),
      { numRuns: runs(200) },
    );
  });

  test('reports for a selection what it reports in the whole table', () => {
    fc.assert(
      fc.property(
        hostileArbitrary(),
        fc.subarray([...RELEASES], { minLength: 1 }),
        fc.subarray([...PLATFORMS], { minLength: 1 }),
        (settings, releases, platforms) => {
          const parts = [{ part: 'locked', settings } as const];
          const whole = checkProfile(parts, ALL);
          for (const cell of checkProfile(parts, { releases, platforms })) {
            const same = whole.find(({ release, platform }) => release === cell.release && platform === cell.platform);
            expect(cell).toEqual(same);
          }
        },
      ),
      { numRuns: runs(60) },
    );
  });
});

/** Current settings of every platform, in the format of a release that has them all. */
const neutralArbitrary = fc.tuple(payloadArbitrary('linux'), fc.nat({ max: LATEST })).map(([payload, index]) => {
  const version = RELEASES[index]?.settingsVersion ?? 0;
  const kept = structuredClone(payload);
  for (const { path, platforms } of FIELDS) {
    const there = firstReleaseWith(path) <= index || (placeAt(path, version) ?? path) !== path;
    if (path !== 'version' && (platforms.length < PLATFORMS.length || !there)) removeLeaf(kept, path);
  }
  return { index, settings: downgrade(kept, version) };
});

test('accepts valid settings for every platform from their release on', () => {
  fc.assert(
    fc.property(neutralArbitrary, partArbitrary, ({ index, settings }, part) => {
      fc.pre(holdingOf(settings).win32.length === 0);
      for (const cell of checkProfile([{ part, settings }], ALL)) {
        const at = RELEASES.findIndex(({ name }) => name === cell.release);
        const lost = cell.findings.filter(({ effect }) => effect !== 'changed');
        if (at >= index) expect({ ...cell, findings: lost }).toEqual({ ...cell, verdict: 'accepted', findings: [] });
      }
    }),
    { numRuns: runs(300) },
  );
});

test.each(PLATFORMS)('refuses what the newest rules refuse, for the newest release on %s', (platform) => {
  let refused = 0;
  fc.assert(
    fc.property(anyPayloadArbitrary(platform), partArbitrary, (settings, part) => {
      fc.pre(holdingOf(settings)[platform].length === 0);
      const wrong = validate(settings, contextOn(platform)).map(({ path }) => path);
      if (wrong.length > 0) refused += 1;
      const cell = newest(checkProfile([{ part, settings }], ALL), platform);
      const found = cell?.findings.filter(({ effect }) => effect === 'refused').map(({ names }) => names);
      expect([...new Set(found?.map((names) => fieldOf(names)))].sort()).toEqual([...new Set(wrong)].sort());
    }),
    { numRuns: runs(300) },
  );
  expect(refused).toBeGreaterThan(rounds(2, 10));
});

function fieldOf(names: readonly string[]): string {
  const path = names.join('.');
  return FIELDS.find((field) => path === field.path || path.startsWith(`${field.path}.`))?.path ?? path;
}

test('never reports that a migration turns accepted settings into refused ones', () => {
  let looked = 0;
  const olderArbitrary = fc
    .tuple(
      fc.oneof(
        neutralArbitrary.map(({ settings }) => settings),
        hostileArbitrary(),
      ),
      fc.integer({ min: 1, max: 18 }),
    )
    .map(([settings, version]) => (typeof settings.version === 'number' ? settings : { ...settings, version }));
  fc.assert(
    fc.property(olderArbitrary, partArbitrary, (settings, part) => {
      fc.pre(versionProblem(settings.version) === undefined);
      const before = checkProfile([{ part, settings }], ALL);
      for (const platform of PLATFORMS) {
        if (newest(before, platform)?.verdict !== 'accepted') continue;
        looked += 1;
        const upgraded = migrate(settings, { platform, locked: part === 'locked', partial: true });
        const after = newest(checkProfile([{ part, settings: upgraded }], ALL), platform);
        expect(after?.findings.filter(({ effect }) => effect === 'refused')).toEqual([]);
      }
    }),
    { numRuns: runs(200) },
  );
  expect(looked).toBeGreaterThan(rounds(10, 50));
});

test('on Windows counts a value at an older key only for releases that read it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 18 }), fc.constantFrom(...PATHS), (version, path) => {
      const settings: JsonObject = { version };
      setLeaf(settings, path, true);
      fc.pre(leafAt(settings, path) === true);
      const cells = checkProfile([{ part: 'defaults', settings }], ALL);
      for (const { platform, findings, settingsVersion } of cells) {
        if (platform !== 'win32' || settingsVersion < version) continue;
        const known = FIELDS.some((field) => field.path === path && field.since <= settingsVersion);
        const gone = findings.some((finding) => finding.path === path && finding.effect === 'ignored');
        if (known && !firstLater(path, settingsVersion)) expect(gone).toBe(false);
        else if (FIELDS.some((field) => field.path === path && field.since > settingsVersion)) expect(gone).toBe(true);
      }
    }),
    { numRuns: runs(300) },
  );
});

/** Some releases of that version do not have the setting yet. */
function firstLater(path: string, settingsVersion: number): boolean {
  const field = FIELDS.find((each) => each.path === path);
  const first = field ? firstReleaseWith(field.path) : 0;
  return RELEASES.some((release, index) => release.settingsVersion === settingsVersion && index < first);
}
