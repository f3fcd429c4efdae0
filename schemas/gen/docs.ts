import { writeFileSync } from 'node:fs';
import type { DriverInfo, Support } from '../../src/drivers/driver.ts';
import { DRIVERS } from '../../src/drivers/index.ts';
import type { JsonValue } from '../../src/json.ts';
import { supportOf } from '../../src/plan/drift.ts';
import {
  type Effect,
  type Field,
  type ManagedPath,
  PLATFORM_NAMES,
  PLATFORMS,
  type Platform,
  type SettingField,
} from '../../src/settings/field.ts';
import { declaredBlocks } from './blocks.ts';
import { type Block, type Declared, declareSettings } from './declaration.ts';

const EFFECTS: Readonly<Record<Effect, string>> = {
  none: 'stored',
  live: 'applied to the running backend',
  restart: 'restarts the backend',
  'restart-or-reset': 'restarts the backend; a lower version resets the cluster',
};

const SUPPORT: Readonly<Record<Support['level'], string>> = {
  enforced: 'takes effect',
  stored: 'stored',
  unsupported: 'refused',
};

// A separate program that runs after `main.ts`: the drivers are built on the files that `main.ts` writes.
writeFileSync('docs/settings.md', settingsPage(declareSettings()));

/** Returns the reference page of all settings. */
function settingsPage(declared: readonly Declared[]): string {
  const settings = declared.filter(({ field }) => field.path !== 'version');
  const blocks = declaredBlocks();
  const options = blocks.flatMap((block) => block.declared.map(({ field }) => field));
  const fields = [...settings.map(({ field }) => field), ...options];
  return [introduction(blocks), matrix(fields), ...settings.map(section), ...options.map(optionSection)].join('\n');
}

function introduction(blocks: readonly Block[]): string {
  const names = blocks.map(({ name }) => `the ${code(name)} block of [profiles](profiles.md#the-${name}-block)`);
  const files = blocks.map(({ file }) => `${code(file)} `).join('');
  return `# Settings

Every setting of schema version 19, and those of ${names.join(' and ')}. This page is
generated from \`schemas/settings/v19.json\`, ${files}and the drivers.

*Effect* is the default cost of a change; a plan shows the actual cost for your service and driver. *Platforms* lists
where a change is accepted; on other platforms, the setting keeps its value.
`;
}

/** Returns the table of each driver's support for each setting. */
function matrix(fields: readonly Field[]): string {
  const drivers = DRIVERS.map((driver) => `- \`${driver.name}\`: ${driver.summary}`).join('\n');
  const rows = fields.map(({ path }) => {
    const cells = DRIVERS.map((driver) => SUPPORT[supportOf(driver, path).level]);
    return `| [${code(path)}](#${anchor(path)}) | ${cells.join(' | ')} |`;
  });
  return `## Support by driver

${drivers}

*${SUPPORT.enforced}*: a change affects the running backend. *${SUPPORT.stored}*: saved, but without effect in this
driver. *${SUPPORT.unsupported}*: an explicit change is refused; the section of the setting gives the reason.

| Setting | ${DRIVERS.map(({ name }) => code(name)).join(' | ')} |
| --- |${' --- |'.repeat(DRIVERS.length)}
${rows.join('\n')}
`;
}

function supportText(driver: DriverInfo, path: ManagedPath): string {
  const support = supportOf(driver, path);
  const reason = support.reason ? `: ${support.reason}` : '';
  if (support.level === 'unsupported') {
    const accepts = support.accepts?.length ? `; accepts ${support.accepts.map(valueText).join(', ')}` : '';
    return `${SUPPORT.unsupported}${reason}${accepts}`;
  }
  const except = support.level === 'enforced' ? (support.except ?? []) : [];
  if (except.length > 0) return `${SUPPORT.enforced}; refuses ${except.map(valueText).join(', ')}${reason}`;
  return `${SUPPORT[support.level]}${reason}`;
}

/** Returns the anchor that the usual renderers generate for a heading. */
function anchor(path: string): string {
  return path.toLowerCase().replace(/[^a-z0-9-]/g, '');
}

function section({ field, formerly, requires }: Declared): string {
  const rows: [string, string][] = [
    ['Type', typeText(field)],
    ['Default', defaultText(field)],
    ['Platforms', platformsText(field.platforms)],
    ['Effect', effectText(field)],
    ['Flag', flagText(field)],
    ['Lockable', field.lockable ? 'yes' : 'no'],
    ['Since version', String(field.since)],
    ...driverRows(field.path),
  ];
  if (formerly.length > 0) rows.push(['Formerly', formerly.map(code).join(', ')]);
  if (field.sensitive) rows.push(['Secret', 'masked in plans, diffs, logs and exports']);
  if (field.machineOnly) rows.push(['Specific to one computer', 'left out when the current settings are exported']);
  const rules = requires.length > 0 ? `\n${requires.map((rule) => `- ${rule}`).join('\n')}\n` : '';
  return `${factsTable(field, rows)}${rules}`;
}

/** Returns the section of a block's field, which only profiles have. */
function optionSection(field: Field): string {
  const block = field.path.split('.')[0] ?? '';
  return factsTable(field, [
    ['Type', typeText(field)],
    ['Default', defaultText(field)],
    ['Effect', effectText(field)],
    ['Where', `the ${code(block)} block of profiles only; the compatible application has no such setting`],
    ...driverRows(field.path),
  ]);
}

function driverRows(path: ManagedPath): [string, string][] {
  return DRIVERS.map((driver) => [`Driver ${code(driver.name)}`, supportText(driver, path)]);
}

function factsTable({ path, description }: { path: string; description: string }, rows: [string, string][]): string {
  return `## ${code(path)}

${description}

| | |
| --- | --- |
${rows.map(([name, text]) => `| ${name} | ${text} |`).join('\n')}
`;
}

function typeText(field: Field): string {
  if (field.format === 'ports') return 'list of integers and strings';
  if (field.enum && field.type.startsWith('map<')) {
    const key = field.format === 'directories' ? 'directory' : 'name';
    return `map of ${key} to ${field.enum.map(code).join(', ')}; \`null\` removes an entry`;
  }
  if (field.enum) {
    const synonyms = Object.entries(field.synonyms ?? {}).map(
      ([from, to]) => `; ${code(from)} is stored as ${code(to)}`,
    );
    return `one of ${field.enum.map(code).join(', ')}${synonyms.join('')}`;
  }
  const names = {
    boolean: 'boolean',
    integer: 'integer',
    string: 'string',
    'string[]': 'list of strings',
    'map<string,boolean>': 'map of name to boolean; `null` removes an entry',
    'map<string,string>': 'map of name to string',
  };
  const range =
    field.min !== undefined && field.max !== undefined
      ? `, ${field.min} to ${field.max}`
      : field.min !== undefined
        ? `, at least ${field.min}`
        : '';
  const format = field.format ? ` (${field.format.replaceAll('-', ' ')})` : '';
  return `${names[field.type]}${range}${field.unit ? ` (${field.unit})` : ''}${format}`;
}

function defaultText(field: Field): string {
  const others = PLATFORMS.flatMap((platform) => {
    const value = field.defaultByPlatform?.[platform];
    if (value === undefined) return [];
    const kernel = field.defaultFromKernel?.[platform];
    return [
      `${valueText(value)} on ${PLATFORM_NAMES[platform]}${kernel ? ` from kernel ${kernel} on (macOS ${kernel - 9})` : ''}`,
    ];
  });
  return [valueText(field.default), ...others].join('; ');
}

function effectText(field: Field): string {
  const { lima, wsl } = field.effect;
  return lima === wsl ? EFFECTS[lima] : `macOS, Linux: ${EFFECTS[lima]}; Windows: ${EFFECTS[wsl]}`;
}

function flagText({ flag, platforms, type }: SettingField): string {
  if (!flag || flag.hidden) return 'none';
  const same = flag.platforms.join() === platforms.join();
  return `${code(`--${flag.name}`)}${entriesText(type)}${same ? '' : ` (${platformsText(flag.platforms)})`}`;
}

/** Explains how to pass several entries on the command line. */
function entriesText(type: Field['type']): string {
  if (type === 'string[]') return ' ENTRY, repeatable, or one JSON array';
  return type.startsWith('map') ? ' KEY=VALUE, repeatable, or one JSON object' : '';
}

function platformsText(platforms: readonly Platform[]): string {
  return platforms.length === PLATFORMS.length
    ? 'all'
    : platforms.map((platform) => PLATFORM_NAMES[platform]).join(', ');
}

function valueText(value: JsonValue): string {
  return code(JSON.stringify(value));
}

function code(text: string): string {
  return `\`${text}\``;
}
