import { dirname, relative } from 'node:path';
import { compile, type JSONSchema } from 'json-schema-to-typescript';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { readSchema } from './declaration.ts';
import { BANNER } from './typescript.ts';

/** Destination of the types of each document. A type that two documents share is declared in the one that is listed first. */
export const DOCUMENTS = {
  plan: 'src/plan/plan.gen.ts',
  history: 'src/plan/history.gen.ts',
  apply: 'src/plan/apply.gen.ts',
  kept: 'src/plan/kept.gen.ts',
  status: 'src/reconcile/status.gen.ts',
  event: 'src/events/event.gen.ts',
} as const;

type DocumentName = keyof typeof DOCUMENTS;

/**
 * Keyword with the type of a value that the schema leaves to the program, such as `src/json.ts#JsonValue
 *  Sensitive`; `Sensitive` is then of the same document.
 */
const TYPE = 'x-rd-type';
const FOREIGN = /([\w./-]+\.ts)#(\w+)/g;
const SHARED = /^urn:rdctl:(\w+)#\/\$defs\/(\w+)$/;
const OWN = /^#\/\$defs\/(\w+)$/;

/** Returns the types of a document: one for itself and each of its definitions that has a title. */
export async function documentTypes(name: DocumentName): Promise<string> {
  const schema = readSchema(fileOf(name));
  const imports = new Map<string, Set<string>>();
  const typed = await compile(typeable(schema, schema, name, imports) as JSONSchema, String(schema.title), {
    bannerComment: '',
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
    style: { singleQuote: true, printWidth: 120 },
  });
  const lines = [...imports].sort().map(([file, names]) => {
    return `import type { ${[...names].sort().join(', ')} } from '${pathTo(file, DOCUMENTS[name])}';\n`;
  });
  return `${BANNER}// From ${fileOf(name)}.\n${lines.join('')}\n${withShortComments(typed)}`;
}

function fileOf(name: string): string {
  return `schemas/${name}.json`;
}

function pathTo(file: string, from: string): string {
  const path = relative(dirname(from), file);
  return path.startsWith('.') ? path : `./${path}`;
}

/** Prepares a node for the compiler: definitions without a title are inlined, and shared ones are imported. */
function typeable(node: JsonObject, root: JsonObject, name: string, imports: Map<string, Set<string>>): JsonObject {
  const { [TYPE]: type, $ref: reference, $id: _id, ...rest } = node;
  const imported = (module: string, symbol: string) => {
    imports.set(module, (imports.get(module) ?? new Set()).add(symbol));
    return symbol;
  };
  const described = typeof rest.description === 'string' ? { description: rest.description } : {};
  if (typeof type === 'string') {
    const text = type.replaceAll(FOREIGN, (_, module, symbol) => imported(module, symbol));
    return { ...described, ...(typeof rest.title === 'string' ? { title: rest.title } : {}), tsType: text };
  }
  if (typeof reference === 'string') {
    const [, other, shared = ''] = SHARED.exec(reference) ?? [];
    if (other !== undefined) {
      const title = titleOf(readSchema(fileOf(other)), shared);
      if (title === undefined || !(other in DOCUMENTS)) throw new Error(`${name}: ${reference} has no type`);
      return { ...described, tsType: imported(DOCUMENTS[other as DocumentName], title) };
    }
    const [, own = ''] = OWN.exec(reference) ?? [];
    const title = titleOf(root, own);
    if (title !== undefined)
      return rest.description === undefined ? { $ref: reference } : { ...described, tsType: title };
    return typeable({ ...definition(root, own), ...described }, root, name, imports);
  }
  return Object.fromEntries(
    Object.entries(rest).flatMap(([key, value]): [string, JsonValue][] => {
      if (key === '$defs' && isObject(value)) {
        const titled = Object.entries(value).filter(([, each]) => isObject(each) && each.title !== undefined);
        return [[key, typeableAll(Object.fromEntries(titled), root, name, imports)]];
      }
      if (key === 'properties' && isObject(value)) return [[key, typeableAll(value, root, name, imports)]];
      if (Array.isArray(value)) {
        return [[key, value.map((each) => (isObject(each) ? typeable(each, root, name, imports) : each))]];
      }
      return [[key, isObject(value) ? typeable(value, root, name, imports) : value]];
    }),
  );
}

function typeableAll(nodes: JsonObject, ...rest: [JsonObject, string, Map<string, Set<string>>]): JsonObject {
  return Object.fromEntries(
    Object.entries(nodes).map(([key, node]) => [key, isObject(node) ? typeable(node, ...rest) : node]),
  );
}

function definition(root: JsonObject, name: string): JsonObject {
  const node = isObject(root.$defs) ? root.$defs[name] : undefined;
  if (!isObject(node)) throw new Error(`${root.$id}: there is no definition ${name}`);
  return node;
}

function titleOf(root: JsonObject, name: string): string | undefined {
  const { title } = definition(root, name);
  return typeof title === 'string' ? title : undefined;
}

/** Removes the compiler's remarks on the uses of a definition, and puts comments on one line if they fit. */
function withShortComments(source: string): string {
  return source
    .replaceAll(/( \*\n)? *\* This interface was referenced by .*\n *\* via the `definition` .*\n/g, '')
    .replaceAll(/^ *\/\*\*\n *\*\/\n/gm, '')
    .replaceAll(/^( *)\* @maxItems \d+\n/gm, '')
    .replaceAll(/^( *)\/\*\*\n *\* (.*)\n *\*\/$/gm, '$1/** $2 */');
}
