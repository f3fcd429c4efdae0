import type { FieldType } from './field.ts';
import { type SchemaNode, schemaTree } from './fields.ts';

/** The member behind a name in some settings version. `ended`: a removed setting, whose type is irrelevant. */
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
