import { DECLARATION, type Declared } from './declaration.ts';
import { BANNER } from './types.ts';

/** The text of `fields.gen.ts`: one line per setting. */
export function fieldsSource(declared: readonly Declared[]): string {
  const lines = declared.map(({ field }) => `  ${JSON.stringify(field)},`).join('\n');
  return `${BANNER}// From ${DECLARATION}.
import type { Field } from './field.ts';

/** Every setting, in the order of the schema. */
export const FIELDS: readonly Field[] = [
${lines}
];
`;
}
