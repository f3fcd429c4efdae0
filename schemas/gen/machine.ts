import { compile } from 'json-schema-to-typescript';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { BANNER } from './typescript.ts';

/** Settings of the machine that the compatible application does not have. */
export const MACHINE_DECLARATION = 'schemas/machine.json';

/** The text of `machine-options.gen.ts`. */
export async function machineOptionsSource(schema: JsonObject): Promise<string> {
  const members = isObject(schema.properties) ? schema.properties : {};
  const fields = Object.entries(members).map(([name, node]) => fieldOf(name, isObject(node) ? node : {}));
  const required = { ...plain(schema), required: Object.keys(members) };
  const typed = await compile(required, 'MachineOptions', {
    bannerComment: '',
    additionalProperties: false,
    style: { singleQuote: true, printWidth: 120 },
  });
  const defaults = Object.fromEntries(
    Object.entries(members).map(([name, node]) => [name, isObject(node) ? node.default : null]),
  );
  return `${BANNER}// From ${MACHINE_DECLARATION}.
import type { MachineField } from './field.ts';

/** Dotted path of a setting in the \`machine\` block. */
export type MachineOptionPath =
${fields.map(({ path }) => `  | '${path}'`).join('\n')};

${typed.replace('export interface MachineOptions {', 'export type MachineOptions = {').replace(/\n}\n$/, '\n};\n')}
export const DEFAULT_MACHINE_OPTIONS: MachineOptions = ${JSON.stringify(defaults)};

/** Every setting of the \`machine\` block, in the order of the schema. */
export const MACHINE_FIELDS: readonly MachineField<MachineOptionPath>[] = [
${fields.map((field) => `  ${JSON.stringify(field)},`).join('\n')}
];
`;
}

function fieldOf(name: string, node: JsonObject) {
  const { type, description, minimum, maximum, additionalProperties } = node;
  const effect = node['x-rd-effect'];
  const values = isObject(additionalProperties) ? additionalProperties.enum : undefined;
  return {
    path: `machine.${name}`,
    type: isObject(additionalProperties) ? 'map' : type === 'array' ? 'list' : 'integer',
    default: node.default ?? null,
    ...(values === undefined ? {} : { values }),
    ...(minimum === undefined ? {} : { min: minimum }),
    ...(maximum === undefined ? {} : { max: maximum }),
    effect: isObject(effect) ? effect.lima : 'none',
    description,
  };
}

/** The schema without the words that only our generator reads. */
export function plain(schema: JsonObject): JsonObject {
  const entries = Object.entries(schema).filter(
    ([key]) => !key.startsWith('x-rd-') && key !== '$schema' && key !== '$id',
  );
  return Object.fromEntries(entries.map(([key, value]) => [key, plainValue(value)]));
}

function plainValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(plainValue);
  return isObject(value) ? plain(value) : value;
}
