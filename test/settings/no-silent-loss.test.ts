import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { checkSettings } from '../../src/settings/check.ts';
import { formatFinding } from '../../src/settings/issue.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { REMOVED_SETTINGS } from '../../src/settings/left-over.ts';
import { parseDocument } from '../../src/settings/parse.ts';
import { checkEach } from '../helpers/check-each.ts';
import { pastSchema } from '../helpers/past-schema.ts';

const SHAPES = [1, 6, 10, 14, 16];

interface Leaf {
  path: string;
  values: [JsonValue, JsonValue];
}

/** Every leaf of a version's schema, with two values for it. */
function leavesOf(version: number): Leaf[] {
  const shape = SHAPES.findLast((from) => from <= version) ?? 1;
  const schema = pastSchema(shape);
  return below(schema, '').filter(({ path }) => path !== 'version');
}

function below(schema: JsonValue, path: string): Leaf[] {
  if (!isObject(schema)) return [];
  if (isObject(schema.properties)) {
    return Object.entries(schema.properties).flatMap(([name, each]) =>
      below(each, path === '' ? name : `${path}.${name}`),
    );
  }
  return [{ path, values: valuesOf(schema, path) }];
}

function valuesOf(schema: JsonObject, path: string): [JsonValue, JsonValue] {
  if (Array.isArray(schema.enum)) return [schema.enum.at(0) ?? null, schema.enum.at(-1) ?? null];
  if (isObject(schema.additionalProperties)) {
    const [one, other] = valuesOf(schema.additionalProperties, path);
    return [{ 'org/a': one }, { 'org/a': other }];
  }
  if (path === 'kubernetes.version') return ['1.30.2', '1.31.5'];
  if (path.endsWith('diskSize')) return ['200GiB', '300GiB'];
  switch ([schema.type].flat()[0]) {
    case 'boolean':
      return [true, false];
    case 'integer':
      return [5, 6];
    case 'array':
      return [['a.example'], ['b.example']];
    default:
      return ['a', 'b'];
  }
}

async function look(version: number, path: string, value: JsonValue) {
  const settings: JsonObject = { version };
  setLeaf(settings, path, value);
  const document = parseDocument(JSON.stringify(settings), 'p.json');
  return checkSettings({ document, at: '', settings }, { platform: 'win32', arch: 'x64' });
}

const VERSIONS = Array.from({ length: 18 }, (_, index) => index + 1);

test.each(VERSIONS)('a document of version %i keeps or reports every value', async (version) => {
  const leaves = leavesOf(version).map(({ path, values }) => [path, values] as const);
  await checkEach(leaves, async (values, path) => {
    const [one, other] = [await look(version, path, values[0]), await look(version, path, values[1])];
    const loud = one.findings.length > 0 && other.findings.length > 0;
    const kept = JSON.stringify(one.settings) !== JSON.stringify(other.settings);
    if (REMOVED_SETTINGS.includes(path)) expect({ kept, loud }).toEqual({ kept: false, loud: false });
    else expect(kept || loud).toBe(true);
  });
});

test('several leaves together lose no more than each alone', async () => {
  const version = fc.integer({ min: 1, max: 18 });
  const cases = version.chain((chosen) =>
    fc.tuple(fc.constant(chosen), fc.subarray(leavesOf(chosen), { maxLength: 8 })),
  );
  await fc.assert(
    fc.asyncProperty(cases, async ([at, chosen]) => {
      const settings: JsonObject = { version: at };
      for (const { path, values } of chosen) setLeaf(settings, path, values[0]);
      const document = parseDocument(JSON.stringify(settings), 'p.json');
      const checked = await checkSettings({ document, at: '', settings }, { platform: 'win32', arch: 'x64' });
      for (const { path, values } of chosen) {
        const alone = await look(at, path, values[0]);
        const unknown = ({ code }: { code: string }) => code === 'unknown';
        if (alone.findings.some(unknown)) expect(checked.findings.some(unknown), path).toBe(true);
        else if (!REMOVED_SETTINGS.includes(path) && checked.findings.length === 0) {
          expect(containsAll(checked.settings, alone.settings), path).toBe(true);
        }
      }
    }),
  );
});

/** Every value of `part` is in `whole`, at the same path. */
function containsAll(whole: JsonObject, part: JsonObject): boolean {
  return Object.entries(part).every(([name, value]) => {
    const found = whole[name];
    if (isObject(value)) return isObject(found) && containsAll(found, value);
    return JSON.stringify(found) === JSON.stringify(value);
  });
}

test.each<[string, string, string[]]>([
  [
    'the flat keys of version 4 in version 5',
    'version: 5\nkubernetes: {containerEngine: containerd, memoryInGB: 4, suppressSudo: true}\ndebug: true\n',
    [
      '2:14: unknown setting "kubernetes.containerEngine" (/kubernetes/containerEngine); did you mean containerEngine.name?',
      '2:43: unknown setting "kubernetes.memoryInGB" (/kubernetes/memoryInGB); did you mean virtualMachine.memoryInGB?',
      '2:58: unknown setting "kubernetes.suppressSudo" (/kubernetes/suppressSudo); did you mean application.adminAccess?',
      '3:1: unknown setting "debug" (/debug); did you mean application.debug?',
    ],
  ],
  [
    'the type of version 14 beside the mount type of version 15',
    'version: 15\nexperimental: {virtualMachine: {type: qemu, mount: {type: reverse-sshfs}}}\n',
    [
      '2:33: unknown setting "experimental.virtualMachine.type" (/experimental/virtualMachine/type); did you mean virtualMachine.type?',
    ],
  ],
  [
    'a tag in version 6',
    'version: 6\nextensions: {org/a: "1.0"}\n',
    ['2:21: "extensions.org/a" cannot be "1.0" (/extensions/org~1a); expected true or false'],
  ],
])('%s', async (_, source, lines) => {
  const document = parseDocument(source, 'p.yaml');
  if (!isObject(document.value)) throw new Error('the test has no settings');
  const { findings } = await checkSettings(
    { document, at: '', settings: document.value },
    { platform: 'darwin', arch: 'arm64' },
  );
  expect(findings.map(formatFinding)).toEqual(lines.map((line) => `p.yaml:${line}`));
});
