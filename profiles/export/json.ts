import type { JsonObject, JsonValue } from '../../src/json.ts';
import { put } from '../../src/settings/own.ts';
import type { DeploymentMembers, DeploymentTree, DeploymentValue } from '../deployment/tree.ts';
import type { Exporter } from './exporter.ts';

/** A deployment profile as JSON in the order of the schema, with two spaces per level and a line end at the end. It holds any text. */
export function jsonText({ members }: Pick<DeploymentTree, 'members'>): string {
  return `${JSON.stringify(objectOf(members), undefined, 2)}\n`;
}

function objectOf(members: DeploymentMembers): JsonObject {
  const object: JsonObject = {};
  for (const [name, value] of members) put(object, name, jsonOf(value));
  return object;
}

function jsonOf(value: DeploymentValue): JsonValue {
  switch (value.kind) {
    case 'boolean':
    case 'integer':
    case 'string':
      return value.value;
    case 'strings':
      return [...value.value];
    case 'map':
    case 'section':
      return objectOf(value.members);
  }
}

/** A file below `/etc` of Linux (tool facts, 8.1). */
export const jsonExporter: Exporter = {
  name: 'json',
  platform: 'linux',
  fileName: (part) => `${part}.json`,
  text: (tree) => jsonText(tree),
};
