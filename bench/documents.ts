import { parse, parseDocument as parseYaml, stringify } from 'yaml';
import { loadDesired } from '../profiles/document/load.ts';
import { SIMULATED_INFO } from '../src/drivers/machines/simulated/index.ts';
import type { JsonObject, JsonValue } from '../src/json.ts';
import { makePlan } from '../src/plan/plan.ts';
import { DEFAULT_BLOCKS } from '../src/settings/blocks.gen.ts';
import { defaultSettings } from '../src/settings/defaults.ts';
import type { Field } from '../src/settings/field.ts';
import { FIELDS } from '../src/settings/fields.gen.ts';
import { leafAt, setLeaf } from '../src/settings/leaf-paths.ts';
import { parseDocument } from '../src/settings/parse.ts';
import { paired, type Result, result } from './measure.ts';

const KEYS = 16_000;

function manyKeys(): string {
  const lines = Array.from({ length: KEYS }, (_, index) => `    example/image-${index}: "1.0.${index}"`);
  return `version: 19\napplication:\n  extensions:\n   installed:\n${lines.join('\n')}\n`;
}

async function time(work: () => void): Promise<number> {
  const start = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

/**
 * A document of 16,000 keys, read with positions and the search for duplicate keys, against the YAML library alone with its own
 * search for duplicates switched off (switched on, it is quadratic).
 */
export async function documents(rounds: number): Promise<Result[]> {
  const text = manyKeys();
  const ours = () =>
    time(() => {
      const { findings, value } = parseDocument(text, 'keys.yaml');
      if (findings.length > 0 || value === undefined) throw new Error(`unexpected findings: ${findings[0]?.message}`);
    });
  const library = () => time(() => void parseYaml(text, { uniqueKeys: false }).toJS());
  await ours();
  await library();
  const figures = await paired(rounds, ours, library);
  return [
    result({
      name: 'document: 16,000 keys',
      compared: 'read with positions and duplicate check / yaml library without either',
      ...figures,
      aim: { sign: '<=', value: 1.5 },
      unit: 'ms',
      rounds,
    }),
  ];
}

const HOST = { platform: 'linux', arch: 'x64' } as const;

/** Another value than the default where that needs no other setting to follow it. */
function another(field: Field, present: JsonValue): JsonValue {
  if (field.type === 'boolean') return !present;
  if (field.type === 'integer') return Number(present) + 1;
  return present;
}

/** A profile that names every setting and changes every boolean and number that stands alone. */
function fullProfile(): string {
  const settings: JsonObject = {};
  const defaults = defaultSettings(HOST);
  for (const field of FIELDS) {
    const present = leafAt(defaults, field.path) ?? null;
    const alone = field.path !== 'version' && field.platforms.includes('linux') && !field.path.includes('9p');
    setLeaf(settings, field.path, alone ? another(field, present) : present);
  }
  return stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', settings });
}

/** From the text of a profile that names every setting to its plan, against the YAML library reading the same text. */
export async function planTime(rounds: number): Promise<Result[]> {
  const text = fullProfile();
  const bytes = Buffer.from(text);
  const live = defaultSettings(HOST);
  const subject = async () => {
    const start = process.hrtime.bigint();
    const { desired, findings } = await loadDesired(['-'], {
      ...HOST,
      cwd: '.',
      env: {},
      readStdin: async () => bytes,
    });
    if (!desired) throw new Error(`the profile is wrong: ${findings[0]?.message}`);
    const { plan } = makePlan({
      request: desired.request,
      live,
      ...DEFAULT_BLOCKS,
      power: 'stopped',
      locks: {},
      driver: SIMULATED_INFO,
      observed: {
        machine: { state: 'absent' },
        engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
        cluster: { state: 'absent' },
      },
      target: { product: 'rdctl', driver: 'simulated', simulated: true },
      generation: 1,
    });
    if (plan.summary.changes < 20) throw new Error(`only ${plan.summary.changes} changes`);
    return Number(process.hrtime.bigint() - start) / 1e6;
  };
  const reference = async () => {
    const start = process.hrtime.bigint();
    parse(text);
    return Number(process.hrtime.bigint() - start) / 1e6;
  };
  // Warm code on both sides: the start-up lines measure the cold one.
  for (let round = 0; round < 20; round++) {
    await subject();
    await reference();
  }
  const figures = await paired(rounds, subject, reference);
  return [
    result({
      name: 'plan: every setting',
      compared: 'profile text to plan / yaml library reading the text',
      ...figures,
      aim: { sign: '<=', value: 3 },
      unit: 'ms',
      rounds,
    }),
  ];
}
