import { compile, type JSONSchema } from 'json-schema-to-typescript';
import { defined, isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { Field } from '../../src/settings/field.ts';
import { type Block, declaredIn, readSchema } from './declaration.ts';
import { partial, plain } from './partial.ts';
import { BANNER } from './typescript.ts';

/** The blocks of a profile that the compatible application does not have, in the order of documents. This is the only list of them. */
const BLOCKS: readonly { name: string; schema: string }[] = [{ name: 'machine', schema: 'schemas/machine.json' }];

/** Destination of the types and defaults of the blocks. */
export const BLOCKS_SOURCE = 'src/settings/blocks.gen.ts';

/** The schema that declares requests, with a line for each block. */
export const REQUEST_SCHEMA = 'schemas/plan.json';

/** Returns every block with the content of its schema. */
export function declaredBlocks(): Block[] {
  return BLOCKS.map(({ name, schema: file }) => {
    const schema = readSchema(file);
    const part = schema['x-rd-part'];
    const declared = declaredIn(schema, `${name}.`).map(({ field, ...rest }) => ({
      field: { ...field, lockable: false, ...defined({ part }) } as Field,
      ...rest,
    }));
    return { name, file, schema, declared };
  });
}

/** Returns the text of `blocks.gen.ts`. */
export async function blocksSource(blocks: readonly Block[]): Promise<string> {
  const whole = await typesOf(Object.fromEntries(blocks.map(({ name, schema }) => [name, complete(plain(schema))])));
  const parts = await typesOf(Object.fromEntries(blocks.map(({ name, schema }) => [name, partial(plain(schema))])));
  const fields = blocks.flatMap(({ declared }) => declared.map(({ field }) => field));
  const carried = ['machine', 'engine', 'cluster'].map((part) => {
    const names = blocks.filter(({ schema }) => schema['x-rd-part'] === part).map(({ name }) => `Blocks['${name}']`);
    return `  ${part}: ${names.join(' & ') || 'object'};`;
  });
  const defaults = Object.fromEntries(blocks.map(({ name, schema }) => [name, defaultOf(schema)]));
  return `${BANNER}// From ${blocks.map(({ file }) => file).join(', ')}.

/** Dotted path of a field of a block. */
export type BlockPath =
${fields.map(({ path }) => `  | '${path}'`).join('\n')};

/** The blocks of a profile that the compatible application does not have. */
export type Blocks = ${whole};

/** Blocks as far as a profile mentions them; \`null\` removes an entry of a map. */
export type PartialBlocks = ${parts};

/** The members of the blocks that the specification of each part carries. */
export type CarriedOptions = {
${carried.join('\n')}
};

export const DEFAULT_BLOCKS: Blocks = ${JSON.stringify(defaults)};
`;
}

/** Returns the schema of requests with one line for each block, replacing the existing ones. */
export function withBlockLines(text: string, blocks: readonly Block[]): string {
  const lines = text.split('\n');
  const isBlock = (line: string) => line.includes(`${BLOCKS_SOURCE}#PartialBlocks[`);
  const first = lines.findIndex(isBlock);
  if (first === -1) throw new Error(`${REQUEST_SCHEMA} has no line for a block`);
  const made = blocks.map(({ name }) => {
    const description = `The \`${name}\` block of a profile; null removes an entry of a map.`;
    const type = `NonNullable<${BLOCKS_SOURCE}#PartialBlocks['${name}']>`;
    return `        "${name}": { "description": "${description}", "x-rd-type": "${type}", "type": "object" },`;
  });
  const rest = lines.filter((line) => !isBlock(line));
  return [...rest.slice(0, first), ...made, ...rest.slice(first)].join('\n');
}

/** Returns the type of an object with these members. It is an alias, which can be used where a `JsonObject` is expected. */
async function typesOf(properties: Record<string, JsonObject>): Promise<string> {
  const untitled = Object.entries(properties).map(([name, { title: _, ...rest }]) => [name, rest]);
  // A block is required if it has required members.
  const required = Object.keys(properties).filter((name) => properties[name]?.required !== undefined);
  const schema: JSONSchema = { type: 'object', required, properties: Object.fromEntries(untitled) };
  const typed = await compile(schema, 'Typed', {
    bannerComment: '',
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    style: { singleQuote: true, printWidth: 120 },
  });
  const [, members] = /^export interface Typed (\{\n.*\n\})\n$/s.exec(typed) ?? [];
  if (members === undefined) throw new Error('types of blocks: one interface expected');
  return members;
}

/** Returns the schema with every member required, including those of sections. */
function complete(schema: JsonObject): JsonObject {
  if (!isObject(schema.properties)) return schema;
  const members = Object.entries(schema.properties).map(([name, node]) => [
    name,
    isObject(node) ? complete(node) : node,
  ]);
  return { ...schema, required: Object.keys(schema.properties), properties: Object.fromEntries(members) };
}

function defaultOf({ properties, default: value = null }: JsonObject): JsonValue {
  if (!isObject(properties)) return value;
  return Object.fromEntries(
    Object.entries(properties).map(([name, node]) => [name, isObject(node) ? defaultOf(node) : null]),
  );
}
