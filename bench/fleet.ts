import { Ajv2020 } from 'ajv/dist/2020.js';
import { build } from 'plist';
import { stringify } from 'yaml';
import { ALL, checkProfile } from '../profiles/check/check.ts';
import type { CheckPart } from '../profiles/check/finding.ts';
import { EXPORTERS } from '../profiles/formats/index.ts';
import { deploymentTree } from '../profiles/formats/tree.ts';
import type { JsonObject } from '../src/json.ts';
import { defaultSettings } from '../src/settings/defaults.ts';
import { FIELDS } from '../src/settings/fields.gen.ts';
import { leafAt, setLeaf } from '../src/settings/leaf-paths.ts';
import { pastSchema } from '../test/helpers/past-schema.ts';
import { paired, type Result, result } from './measure.ts';

const ajvCheck = new Ajv2020({ allErrors: true, allowUnionTypes: true }).compile(pastSchema(16));

/** Exports in one measurement: one alone is shorter than the clock is exact. */
const EXPORTS = 200;
const PROFILES = 1_000;

/** Every setting at its default. */
function everySetting(): JsonObject {
  const settings: JsonObject = {};
  const defaults = defaultSettings({ platform: 'linux', arch: 'x64' });
  for (const { path } of FIELDS) setLeaf(settings, path, leafAt(defaults, path) ?? null);
  return settings;
}

async function time(work: () => Promise<void> | void): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

type Figures = Awaited<ReturnType<typeof paired>>;

/** Times of so much work as rates; the ratio stays that of the times. */
function perSecond(work: number, { ratio, subject, reference }: Figures): Figures {
  const rate = (ms: number) => (work * 1000) / ms;
  return { ratio, subject: rate(subject), reference: rate(reference) };
}

/** A profile with every setting in each format, against the property list library writing the same settings. */
async function exports(rounds: number): Promise<Result[]> {
  const settings = everySetting();
  const reference = () =>
    time(() => {
      for (let count = 0; count < EXPORTS; count += 1) build(settings);
    });
  const results: Result[] = [];
  for (const [name, load] of Object.entries(EXPORTERS)) {
    const exporter = await load();
    const subject = () =>
      time(async () => {
        for (let count = 0; count < EXPORTS; count += 1) {
          const tree = await deploymentTree(settings);
          exporter.text(tree, { part: 'locked', hive: 'hklm' });
        }
      });
    await subject();
    await reference();
    const figures = await paired(rounds, subject, reference);
    results.push(
      result({
        name: `export: ${name}, every setting`,
        compared: 'time of an export / of the plist library writing the same settings',
        ...perSecond(EXPORTS, figures),
        aim: { sign: '<=', value: 2 },
        unit: 'exports/s',
        rounds,
      }),
    );
  }
  return results;
}

/** The templates for Group Policy, which are made of the schema alone, against the YAML library writing the schema's facts. */
async function templates(rounds: number): Promise<Result> {
  const { admxFiles } = await import('../profiles/formats/admx.ts');
  const subject = () => time(() => void admxFiles());
  const reference = () => time(() => void stringify(FIELDS));
  await subject();
  await reference();
  const figures = await paired(rounds, subject, reference);
  return result({
    name: 'export: admx and adml',
    compared: 'time to make them of the schema / of the yaml library writing the facts of the settings',
    ...perSecond(1, figures),
    aim: { sign: '<=', value: 1 },
    unit: 'exports/s',
    rounds,
  });
}

/** Profiles of all versions, each with other settings. */
function manyProfiles(): CheckPart[][] {
  const defaults = everySetting();
  const paths = FIELDS.map(({ path }) => path).filter((path) => path !== 'version');
  return Array.from({ length: PROFILES }, (_, index) => {
    const settings: JsonObject = { version: 6 + (index % 14) };
    for (let count = 0; count < 12; count += 1) {
      const path = paths[(index * 7 + count * 5) % paths.length];
      if (path !== undefined) setLeaf(settings, path, leafAt(defaults, path) ?? null);
    }
    return [{ part: index % 2 === 0 ? 'locked' : 'defaults', settings }];
  });
}

/** 1,000 profiles in all cells of the table, against a compiled schema looking at each profile once per cell. */
async function check(rounds: number): Promise<Result> {
  const profiles = manyProfiles();
  const cells = ALL.releases.length * ALL.platforms.length;
  const subject = () =>
    time(() => {
      for (const parts of profiles) {
        if (checkProfile(parts, ALL).length !== cells) throw new Error('a cell is missing');
      }
    });
  const reference = () =>
    time(() => {
      for (const [part] of profiles) for (let cell = 0; cell < cells; cell += 1) ajvCheck(part?.settings);
    });
  await subject();
  await reference();
  const figures = await paired(rounds, subject, reference);
  return result({
    name: `profile check: ${PROFILES} profiles in ${cells} cells`,
    compared: 'time for all findings / for a compiled JSON schema, once per cell',
    ...perSecond(PROFILES, figures),
    aim: { sign: '<=', value: 10 },
    unit: 'profiles/s',
    rounds,
  });
}

/** What administrators of many computers wait for. */
export async function fleet(rounds: number): Promise<Result[]> {
  return [...(await exports(rounds)), await templates(rounds), await check(rounds)];
}
