import { explainSection, explainSetting } from '../../src/client/explain.ts';
import { settingNamed } from '../../src/client/setting-name.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { usage } from '../arguments.ts';
import { defineCommand, type FlagTable } from '../command.ts';
import { findLayers } from '../layers.ts';
import { OUTPUT_FLAG } from '../views/choose.ts';
import { explanationText, sectionText } from '../views/explanation-text.ts';
import { style } from '../views/style.ts';

/** The flags of `set`, because people copy them from there with the hyphens. */
const NAMES: FlagTable = Object.fromEntries(
  FIELDS.flatMap(({ flag, path }) =>
    flag ? [[flag.name, { type: 'boolean', summary: path, aliases: flag.aliases, hidden: true }]] : [],
  ),
);

export const explain = defineCommand({
  name: 'explain',
  summary: 'Show where a setting has its value from, and who decides',
  usage: '[SETTING|SECTION]',
  description: `Prints every layer (built-in default, defaults profile of the administrator, stored settings, locked profile), which one
wins and where it comes from; then what the setting takes, what a change costs and what the driver does with it.
A section, or nothing, lists settings. With no service running it tells what the next start would take. Secrets are masked.
Exit codes: 0 told; 1 no such setting, or failed; 3 a deployment profile cannot be used.`,
  flags: { ...NAMES, output: OUTPUT_FLAG },
  classic: false,
  async run(invocation) {
    const { args, flags, given, io } = invocation;
    const names = [...args, ...given.map(({ name }) => name).filter((name) => Object.hasOwn(NAMES, name))];
    if (names.length > 1) throw usage('explain takes one setting or section');
    const meant = settingNamed(names[0] ?? '');
    const { layers, running } = await findLayers(invocation);
    const print = (document: unknown) => io.out(`${JSON.stringify(document, null, 2)}\n`);
    const paint = style(io.colour);
    if ('section' in meant) {
      const section = explainSection(meant.section, layers);
      if (flags.output === 'json') print(section);
      else io.out(sectionText(section, paint));
      return 0;
    }
    const explanation = explainSetting(meant.field, layers);
    if (flags.output === 'json') {
      print(explanation);
      return 0;
    }
    const chosen = meant.field.path === 'kubernetes.version' && explanation.value === '' ? running : undefined;
    io.out(explanationText(explanation, chosen === undefined ? [] : [`The service chose ${chosen}.`], paint));
    return 0;
  },
});
