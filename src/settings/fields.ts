import type { JsonObject, JsonValue } from '../json.ts';
import type { Field, FieldType, SettingField } from './field.ts';
import { BLOCK_FIELDS, FIELDS } from './fields.gen.ts';

/** A node of a schema: a field, or a section with its members. */
export type SchemaNode<F extends Field = SettingField> = { field: F } | { section: SchemaTree<F> };
export type SchemaTree<F extends Field = SettingField> = ReadonlyMap<string, SchemaNode<F>>;

/** Everything that a profile can manage by path: the settings, then the fields of the blocks. Power and port forwards are managed separately. */
export const MANAGED_FIELDS: readonly Field[] = /* @__PURE__ */ managedFields();

/** A call that a bundler can drop: a command that needs neither table is not given both. */
function managedFields(): Field[] {
  return [...FIELDS, ...BLOCK_FIELDS];
}

let settings: SchemaTree | undefined;
let blocks: SchemaTree<Field> | undefined;
let settingByPath: ReadonlyMap<string, SettingField> | undefined;
let fieldByPath: ReadonlyMap<string, Field> | undefined;

/** Returns the setting with this dotted path, or undefined. */
export function settingAt(path: string): SettingField | undefined {
  settingByPath ??= new Map(FIELDS.map((field) => [field.path, field]));
  return settingByPath.get(path);
}

/** Returns the setting or block field with this dotted path, or undefined. */
export function fieldAt(path: string): Field | undefined {
  fieldByPath ??= new Map(MANAGED_FIELDS.map((field) => [field.path, field]));
  return fieldByPath.get(path);
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

/** Returns the root of the settings, built on first use. */
export function schemaTree(): SchemaTree {
  settings ??= buildTree(FIELDS);
  return settings;
}

/** Returns the blocks, each with its fields, built on first use. */
export function blockTree(): SchemaTree<Field> {
  blocks ??= buildTree<Field>(BLOCK_FIELDS);
  return blocks;
}

/** Builds a nested object with one value per setting, in schema order. */
export function objectOf(value: (field: SettingField) => JsonValue | undefined): JsonObject {
  return assemble(schemaTree(), value);
}

/** Builds a nested object with one value per field, in schema order. */
export function assemble<F extends Field>(
  members: SchemaTree<F>,
  value: (field: F) => JsonValue | undefined,
): JsonObject {
  const result: JsonObject = {};
  for (const [name, node] of members) {
    const part = 'field' in node ? value(node.field) : assemble(node.section, value);
    if (part !== undefined) result[name] = part;
  }
  return result;
}

function buildTree<F extends Field>(fields: readonly F[]): SchemaTree<F> {
  const root = new Map<string, SchemaNode<F>>();
  for (const field of fields) {
    const names = field.path.split('.');
    const last = names.pop() ?? '';
    let members = root;
    for (const name of names) members = sectionOf(members, name);
    members.set(last, { field });
  }
  return root;
}

function sectionOf<F extends Field>(members: Map<string, SchemaNode<F>>, name: string): Map<string, SchemaNode<F>> {
  const known = members.get(name);
  if (known && 'section' in known && known.section instanceof Map) return known.section;
  const section = new Map<string, SchemaNode<F>>();
  members.set(name, { section });
  return section;
}

/** The member behind a name in some settings version. `ended`: a removed setting, whose type does not matter. */
export type SettingMember =
  | { name: string; kind: 'section'; members: SettingMember[] }
  | { name: string; kind: 'setting'; type: FieldType }
  | { name: string; kind: 'ended' };

/** Returns the names valid in the newest version, in schema order, without loading the older shapes, which are large. */
export function membersOfToday(nodes: SchemaTree = schemaTree()): SettingMember[] {
  return [...nodes].map(([name, node]) =>
    'field' in node
      ? { name, kind: 'setting', type: node.field.type }
      : { name, kind: 'section', members: membersOfToday(node.section) },
  );
}
