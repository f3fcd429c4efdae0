import { DECLARATION, type Declared } from './declaration.ts';
import { BANNER } from './types.ts';

/** The text of `cli/arguments/flags.gen.ts`: what the tool needs to know of each setting that has a flag, and no more. */
export function flagsSource(declared: readonly Declared[]): string {
  const lines = declared.flatMap(({ field }) => {
    const { flag, path, type, since, unit, description } = field;
    if (!flag) return [];
    const row = { ...flag, path, type, since, summary: unit ? `${description} In ${unit}.` : description };
    return [`  ${JSON.stringify(row)},`];
  });
  return `${BANNER}// From ${DECLARATION}.
import type { SettingFlagRow } from '../../src/settings/field.ts';

/** Every flag of \`set\` and \`start\` that stands for a setting, in the order of the schema. */
export const SETTING_FLAGS: readonly SettingFlagRow[] = [
${lines.join('\n')}
];
`;
}
