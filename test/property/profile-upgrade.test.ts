import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDocument as parseYaml } from 'yaml';
import { upgradeDocument } from '../../profiles/document/upgrade/upgrade.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { checkSettings } from '../../src/settings/check.ts';
import { leaves, pointerNames, pointerTo, setLeaf, valueAt } from '../../src/settings/leaf-paths.ts';
import { migrate } from '../../src/settings/migrate.ts';
import { parseDocument } from '../../src/settings/parse.ts';
import { pastSchema } from '../helpers/past-schema.ts';
import { runs } from '../helpers/rounds.ts';
import { COMMENT, diceOf, writtenAs } from '../helpers/yaml-layout.ts';

const HOST = { platform: 'linux', arch: 'x64' } as const;
const SHAPES = [4, 6, 10, 14, 16];

type Leaf = readonly [path: string, values: fc.Arbitrary<JsonValue>];

const LEAVES = new Map<number, Leaf[]>();

/** Every value that a version knows, with its allowed values. */
function leavesOf(version: number): Leaf[] {
  const shape = SHAPES.findLast((from) => from <= version) ?? 4;
  const known = LEAVES.get(shape);
  if (known) return known;
  const schema = pastSchema(shape);
  const found = below(schema, '').filter(([path]) => path !== 'version');
  LEAVES.set(shape, found);
  return found;
}

function below(schema: JsonValue, path: string): Leaf[] {
  if (!isObject(schema)) return [];
  if (!isObject(schema.properties)) return [[path, valuesOf(schema, path)]];
  return Object.entries(schema.properties).flatMap(([name, each]) =>
    below(each, path === '' ? name : `${path}.${name}`),
  );
}

function valuesOf(schema: JsonObject, path: string): fc.Arbitrary<JsonValue> {
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if (isObject(schema.additionalProperties)) {
    const [name, value] = [
      fc.oneof(fc.stringMatching(/^[a-z]{1,4}\/[a-z]{1,5}(:[a-z0-9.]{1,4})?$/), fc.constantFrom('Ubuntu', 'a b', '1')),
      valuesOf(schema.additionalProperties, path),
    ];
    return fc.dictionary(name, value, { maxKeys: 4 });
  }
  if (path === 'kubernetes.version') return fc.constantFrom('1.30.2', 'v1.31.5', '');
  if (path.endsWith('diskSize')) return fc.constantFrom('200GiB', '300 GB');
  switch ([schema.type].flat()[0]) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: 5, max: 60 });
    case 'array':
      return fc.array(fc.constantFrom('a.example', ' b.example ', '', '10.0.0.0/8', '# no comment'), { maxLength: 4 });
    default:
      return fc.constantFrom('a', "it's", '"q"', 'two words', '# hash', '', 'true', '12', 'käse: 🧀', 'a\nb\n', '{x}');
  }
}

/** Valid settings of an old version. */
const oldSettings = fc.integer({ min: 1, max: 18 }).chain((version) =>
  fc.subarray(leavesOf(version), { maxLength: 14 }).chain((chosen) =>
    fc.tuple(...chosen.map(([, values]) => values)).map((values) => {
      const settings: JsonObject = { version };
      for (const [index, value] of values.entries()) setLeaf(settings, chosen[index]?.[0] ?? '', value);
      return settings;
    }),
  ),
);

/** The settings without the values that have a finding: conflicts between values are not tested here. */
async function withoutMistakes(settings: JsonObject): Promise<JsonObject> {
  const document = parseDocument(JSON.stringify(settings), 'p.json');
  const { findings } = await checkSettings({ document, at: '', settings }, HOST);
  const wrong = findings.filter(({ code }) => !['conflict', 'platform', 'kubernetes-version'].includes(code));
  if (wrong.length === 0) return settings;
  const copy = structuredClone(settings);
  for (const { pointer } of wrong) {
    const names = pointerNames(pointer);
    // A list item removes the whole list.
    while (names.length > 1 && !isObject(valueAt(copy, pointerTo(names.slice(0, -1))) ?? null)) names.pop();
    const section = valueAt(copy, pointerTo(names.slice(0, -1)));
    const last = names.at(-1) ?? '';
    if (section !== undefined && isObject(section) && Object.hasOwn(section, last)) delete section[last];
    // An entry that is found by the name that it would get.
    else if (names[0] !== undefined) delete copy[names[0]];
  }
  return withoutMistakes(copy);
}

/** Members of a list or a map. */
function sizeOf(value: JsonValue | undefined): number {
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
}

const layout = fc.record({
  numbers: fc.array(fc.nat({ max: 1000 }), { minLength: 50, maxLength: 120 }),
  step: fc.constantFrom(2, 4, 3, 8),
  eol: fc.constantFrom('\n', '\n', '\r\n'),
  profile: fc.boolean(),
  open: fc.boolean(),
});

test('an upgraded text means what the migration says, keeps the comments of remaining settings, and needs no second upgrade', async () => {
  await fc.assert(
    fc.asyncProperty(oldSettings, layout, async (any, { numbers, step, eol, profile, open }) => {
      const settings = await withoutMistakes(any);
      const dice = diceOf(numbers);
      const { text: body, comments } = writtenAs(settings, dice, profile ? step : 0, step, eol);
      const inner = body.trimStart().startsWith('{') ? `settings: ${body}` : `settings:${eol}${body}`;
      const whole = profile
        ? `# c0${eol}apiVersion: rdctl/v1${eol}kind: Profile # c0 a: b${eol}${inner}# c0 {${eol}state: started${eol}`
        : body;
      const text = open ? whole.trimEnd() : whole;
      expect(parseYaml(text).errors).toEqual([]);
      const upgraded = await upgradeDocument(Buffer.from(text), 'p.yaml', HOST);
      const read = parseDocument(upgraded.after, 'p.yaml');
      expect(read.findings).toEqual([]);
      const found = valueAt(read.value ?? null, profile ? '/settings' : '');
      if (found === undefined || !isObject(found)) throw new Error('the settings are gone');
      expect(Object.fromEntries(leaves(found))).toEqual(
        Object.fromEntries(leaves(migrate(settings, { ...HOST, partial: true }))),
      );
      const { changes } = upgraded;
      const gone = changes.flatMap(({ comments = [] }) => comments.map((each) => each.trim()));
      const written = [...comments, ...(profile ? ['# c0', '# c0 a: b', '# c0 {'] : [])];
      expect([...(upgraded.after.match(COMMENT) ?? []), ...gone].sort()).toEqual(written.sort());
      const taken = ({ to, before, after }: (typeof changes)[number]) =>
        to === undefined || sizeOf(after) < sizeOf(before);
      expect(changes.filter((change) => change.comments && !taken(change))).toEqual([]);
      const again = await upgradeDocument(Buffer.from(upgraded.after), 'p.yaml', HOST);
      expect(again.changes).toEqual([]);
      expect(again.after).toBe(upgraded.after);
    }),
    { numRuns: runs(120) },
  );
});
