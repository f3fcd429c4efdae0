import type { ExplainedLayer, Explanation, SectionExplanation } from '../../src/client/explain.ts';
import { PLATFORM_NAMES } from '../../src/settings/field.ts';
import type { Style } from './style.ts';
import { count, plainText, valueText } from './value.ts';

const EFFECTS: Record<Explanation['effect'], string> = {
  none: 'is stored; nothing that runs uses it',
  live: 'is applied to what runs',
  restart: 'restarts the backend',
  'restart-or-reset': 'restarts the backend; a lower version deletes the data of the cluster',
};

const PARTLY_LIVE = 'is applied to what runs where that takes it, else restarts the backend; a plan tells which';

const LEVELS = {
  enforced: 'takes effect',
  stored: 'kept, without effect',
  unsupported: 'a change is refused',
} as const;

const BASES: Record<Explanation['basis'], string> = {
  service: '',
  files: 'No service is running: this is what the next start takes.',
  application: 'Told by another application, as far as it tells.',
};

/** Where a setting's value comes from, as text: the value, every layer, then the setting's description. */
export function explanationText(explanation: Explanation, more: readonly string[], paint: Style): string {
  const { path, value, from, locked, basis, layers, description } = explanation;
  const why = locked ? paint.warn(`locked by ${source(layers)}`) : from;
  const sections = [
    BASES[basis],
    `${paint.bold(path)} = ${valueText(value)}  (${why})${more.map((line) => `\n${plainText(line)}`).join('')}`,
    description,
    table(layers.map((layer) => layerRow(layer))),
    ...(locked ? ['It cannot be changed here; ask your administrator.'] : []),
    factsText(explanation),
  ];
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`;
}

/** All settings of a section, one per line. */
export function sectionText({ path, settings, basis }: SectionExplanation, paint: Style): string {
  const rows = settings.map(({ path: name, value, from, locked, isDefault }) => [
    `  ${name}`,
    short(valueText(value)),
    locked ? 'locked' : isDefault ? 'default' : from,
  ]);
  const sections = [
    BASES[basis],
    `${paint.bold(path === '' ? 'All settings' : path)}: ${count(settings.length, 'setting')}`,
    table(rows),
    'Ask for one of them to see its layers: rdctl explain SETTING',
  ];
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`;
}

function source(layers: readonly ExplainedLayer[]): string {
  return plainText(layers.find(({ wins }) => wins)?.source ?? '');
}

function layerRow({ layer, value, source: from, wins, note }: ExplainedLayer): string[] {
  const where = note === undefined ? from : `${from} (${note})`;
  return [`${wins ? '→ ' : '  '}${layer}`, value === undefined ? '-' : short(valueText(value)), plainText(where)];
}

function factsText(explanation: Explanation): string {
  const { type, expected, synonyms = {}, platforms, lockable, effect, driver, flag, docs } = explanation;
  const also = Object.entries(synonyms).map(([other, meant]) => `${other} means ${meant}`);
  const rows: [string, string][] = [
    ['Takes', `${expected} (${type})${also.length === 0 ? '' : `; ${also.join(', ')}`}`],
    ['A change', driver?.partlyLive ? PARTLY_LIVE : EFFECTS[effect]],
    ...(driver
      ? [
          [
            'Driver',
            `${driver.name}: ${LEVELS[driver.level]}${driver.reason === undefined ? '' : `: ${plainText(driver.reason)}`}`,
          ] satisfies [string, string],
        ]
      : []),
    ...(platforms.length === 3
      ? []
      : [
          ['Platforms', platforms.map((platform) => PLATFORM_NAMES[platform]).join(', ') || 'none'] satisfies [
            string,
            string,
          ],
        ]),
    ...(lockable ? [] : [['Locks', 'no profile can lock it'] satisfies [string, string]]),
    ['Flag', flag ?? 'none; change it with `rdctl apply`'],
    ['Docs', docs],
  ];
  return table(rows);
}

/** Columns as wide as their longest cell; the last one is not padded. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join('  '),
    )
    .join('\n');
}

function short(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
