import type { JsonObject, JsonValue } from '../json.ts';
import type { Field, FieldType } from './field.ts';
import { FIELDS } from './fields.gen.ts';

/** A node of the schema: a setting, or a section with its members. */
export type SchemaNode = { field: Field } | { section: ReadonlyMap<string, SchemaNode> };

let tree: ReadonlyMap<string, SchemaNode> | undefined;
let byPath: ReadonlyMap<string, Field> | undefined;

/** The setting with this dotted path, if there is one. */
export function fieldAt(path: string): Field | undefined {
  byPath ??= new Map(FIELDS.map((field) => [field.path, field]));
  return byPath.get(path);
}

/** True for an object of settings; a map is a setting, not a section. */
export function isSection(path: string): boolean {
  let members = schemaTree();
  for (const name of path.split('.')) {
    const node = members.get(name);
    if (!node || 'field' in node) return false;
    members = node.section;
  }
  return true;
}

/** The root of the settings, built on first use. */
export function schemaTree(): ReadonlyMap<string, SchemaNode> {
  tree ??= buildTree();
  return tree;
}

/** A new nested object with one value per setting, in schema order. */
export function objectOf(value: (field: Field) => JsonValue | undefined): JsonObject {
  return assemble(schemaTree(), value);
}

function assemble(
  members: ReadonlyMap<string, SchemaNode>,
  value: (field: Field) => JsonValue | undefined,
): JsonObject {
  const result: JsonObject = {};
  for (const [name, node] of members) {
    const part = 'field' in node ? value(node.field) : assemble(node.section, value);
    if (part !== undefined) result[name] = part;
  }
  return result;
}

function buildTree(): ReadonlyMap<string, SchemaNode> {
  const root = new Map<string, SchemaNode>();
  for (const field of FIELDS) {
    const names = field.path.split('.');
    const last = names.pop() ?? '';
    let members = root;
    for (const name of names) members = sectionOf(members, name);
    members.set(last, { field });
  }
  return root;
}

function sectionOf(members: Map<string, SchemaNode>, name: string): Map<string, SchemaNode> {
  const known = members.get(name);
  if (known && 'section' in known && known.section instanceof Map) return known.section;
  const section = new Map<string, SchemaNode>();
  members.set(name, { section });
  return section;
}

/** The member behind a name in some settings version. `ended`: a removed setting, whose type does not matter. */
export type SettingMember =
  | { name: string; kind: 'section'; members: SettingMember[] }
  | { name: string; kind: 'setting'; type: FieldType }
  | { name: string; kind: 'ended' };

/** The names valid in the newest version, in schema order; does not load the older shapes, which are large. */
export function membersOfToday(nodes: ReadonlyMap<string, SchemaNode> = schemaTree()): SettingMember[] {
  return [...nodes].map(([name, node]) =>
    'field' in node
      ? { name, kind: 'setting', type: node.field.type }
      : { name, kind: 'section', members: membersOfToday(node.section) },
  );
}
