import type { FieldType } from './field.ts';
import { type SchemaNode, schemaTree } from './fields.ts';

/** What a name in settings of some version stands for. `ended`: a setting of old that became nothing; its type does not matter any more. */
export type SettingMember =
  | { name: string; kind: 'section'; members: SettingMember[] }
  | { name: string; kind: 'setting'; type: FieldType }
  | { name: string; kind: 'ended' };

/** The names that settings of the newest version may have, in schema order; without the shapes of older versions, which are large. */
export function membersOfToday(nodes: ReadonlyMap<string, SchemaNode> = schemaTree()): SettingMember[] {
  return [...nodes].map(([name, node]) =>
    'field' in node
      ? { name, kind: 'setting', type: node.field.type }
      : { name, kind: 'section', members: membersOfToday(node.section) },
  );
}
