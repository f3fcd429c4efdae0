import { layerFacts } from '../../profiles/policies/policy.ts';
import {
  type ExplainedLayer,
  type Explanation,
  explainManagers,
  explainSection,
  explainSetting,
  type SectionExplanation,
} from '../../src/client/explain.ts';
import { type ManagedBy, managerText } from '../../src/client/managers.ts';
import { layersOfFiles } from '../../src/client/offline.ts';
import { layersOfApplication } from '../../src/client/rancher-desktop/index.ts';
import { runningService } from '../../src/client/session/find.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import { defined } from '../../src/json.ts';
import type { SettingLayers } from '../../src/plan/layers.ts';
import type { Host } from '../../src/settings/defaults.ts';
import { type Field, PLATFORM_NAMES, PLATFORMS } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { MANAGED_FIELDS } from '../../src/settings/fields.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { pastSetting, pastText } from '../../src/settings/past.ts';
import { readFirstRun } from '../../src/state/state-file.ts';
import { hostOf, policiesOf } from '../arguments/environment.ts';
import { usage } from '../arguments/values.ts';
import { type Caller, defineCommand, type FlagTable, type Io } from '../command.ts';
import { differenceText } from '../views/difference-text.ts';
import { authorText, timeText } from '../views/history-text.ts';
import { count, jsonText, paragraphs, plainText, type Style, style, tableLines, valueText } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';
import { managedHistory } from './plan/managers.ts';

/** The flags of `set`, so that a setting can be pasted with its hyphens. */
const NAMES: FlagTable = Object.fromEntries(
  FIELDS.flatMap(({ flag, path }) =>
    flag ? [[flag.name, { type: 'boolean', summary: path, aliases: flag.aliases, hidden: true }]] : [],
  ),
);

export const explain = defineCommand({
  name: 'explain',
  summary: 'Show where the value of a setting comes from',
  usage: '[SETTING|SECTION]',
  description: `Prints every layer (built-in default, administrator's defaults profile, stored settings, locked profile), its
source, and which layer takes effect; then the accepted values, the cost of a change, whether the driver supports the
setting, and what set it, when and from where.
With a section or without a name, lists settings. If no service is running, shows what the next start would use. Secrets are masked.
Exit codes: 0 success; 1 no such setting, or failure; 3 a deployment profile is invalid.

  rdctl explain virtualMachine.memoryInGB`,
  flags: { ...NAMES, output: OUTPUT_FLAG },
  classic: false,
  async run(invocation) {
    const { args, flags, given, io } = invocation;
    const names = [...args, ...given.map(({ name }) => name).filter((name) => Object.hasOwn(NAMES, name))];
    if (names.length > 1) throw usage('explain takes one setting or section');
    const meant = settingNamed(names[0] ?? '');
    const { layers, running, home } = await findLayers(invocation);
    const json = flags.output === 'json';
    const paint = style(io.color);
    if ('section' in meant) {
      const section = explainSection(meant.section, layers);
      if (json) io.out(jsonText(section));
      else io.say(sectionText(section, paint));
      return 0;
    }
    const explained = explainSetting(meant.field, layers);
    const { managers } = home === undefined ? { managers: [] } : await managedHistory({ home }, homeOf(io));
    const explanation = { ...explained, ...explainManagers(explained, managers) };
    const chosen = explanation.path === 'kubernetes.version' && explanation.value === '' ? running : undefined;
    const more = chosen === undefined ? [] : [`The service chose ${chosen}.`];
    if (json) io.out(jsonText(explanation));
    else io.say(explanationText(explanation, more, paint));
    return 0;
  },
});

interface FoundLayers {
  layers: SettingLayers;
  /** Version of the running cluster. */
  running?: string;
  /** The home of the layers; absent for another application. */
  home?: string;
}

/** Finds the layers of settings: from the service, another application, or the files. */
async function findLayers(invocation: Caller): Promise<FoundLayers> {
  const { io } = invocation;
  const host = hostOf(io);
  const service = await runningService(invocation);
  if (!service) return { layers: await layersWithoutService(io, host), home: homeOf(io).data };
  const { client } = service;
  if (!client.layers) {
    const facts = layerFacts(await policiesOf(io, host), { host, settingsFile: '' });
    return { layers: await layersOfApplication(client, facts, io.signal) };
  }
  const { cluster, home } = service.status;
  return {
    layers: await client.layers({ signal: io.signal }),
    ...defined({ home }),
    ...(cluster.state === 'running' ? { running: cluster.installedVersion } : {}),
  };
}

async function layersWithoutService(io: Io, host: Host): Promise<SettingLayers> {
  const where = homeOf(io);
  const policies = await policiesOf(io, host);
  const firstRun = await readFirstRun(where.firstRunFile);
  const facts = layerFacts(policies, { host, settingsFile: where.settingsFile, ...(firstRun ? { firstRun } : {}) });
  return layersOfFiles(where, host, policies, facts);
}

const EFFECTS: Record<Explanation['effect'], string> = {
  none: 'is only stored, because nothing running uses it',
  live: 'is applied live',
  restart: 'restarts the backend',
  'restart-or-reset': 'restarts the backend; a lower version deletes the cluster data',
};

const PARTLY_LIVE = 'is applied live where supported, otherwise restarts the backend; `rdctl plan` shows which';

const LEVELS = {
  enforced: 'takes effect',
  stored: 'kept, without effect',
  unsupported: 'a change is refused',
} as const;

const BASES: Record<Explanation['basis'], string> = {
  service: '',
  files: 'No service is running: this is what the next start uses.',
  application: 'Reported by another application; may be incomplete.',
};

/** Formats the origin of a setting's value: the value, every layer, then the setting's description. */
export function explanationText(explanation: Explanation, more: readonly string[], paint: Style): string {
  const { path, value, from, locked, basis, layers, description } = explanation;
  const why = locked ? paint.warn(`locked by ${source(layers)}`) : from;
  return paragraphs([
    BASES[basis],
    `${paint.bold(path)} = ${valueText(value)}  (${why})${more.map((line) => `\n${plainText(line)}`).join('')}`,
    description,
    tableLines(layers.map((layer) => layerRow(layer, value))).join('\n'),
    ...(locked ? ['It cannot be changed here; ask your administrator.'] : []),
    factsText(explanation),
  ]);
}

/** Formats all settings of a section, one per line. */
function sectionText({ path, settings, basis }: SectionExplanation, paint: Style): string {
  const rows = settings.map(({ path: name, value, from, locked, isDefault }) => [
    `  ${name}`,
    short(valueText(value)),
    locked ? 'locked' : isDefault ? 'default' : from,
  ]);
  return paragraphs([
    BASES[basis],
    `${paint.bold(path === '' ? 'All settings' : path)}: ${count(settings.length, 'setting')}`,
    tableLines(rows).join('\n'),
    'To see the layers of a setting: rdctl explain SETTING',
  ]);
}

function source(layers: readonly ExplainedLayer[]): string {
  return plainText(layers.find(({ wins }) => wins)?.source ?? '');
}

function layerRow({ layer, value, source: from, wins, note }: ExplainedLayer, winning: Explanation['value']): string[] {
  const where = note === undefined ? from : `${from} (${note})`;
  return [`${wins ? '→ ' : '  '}${layer}`, short(layerText(value, winning)), plainText(where)];
}

/** Formats the value of a layer. A list that shares entries with the one in force is shown by its differences. */
function layerText(value: ExplainedLayer['value'], winning: Explanation['value']): string {
  if (value === undefined) return '-';
  const { entries } = differenceText(winning, value);
  return entries.length === 0 ? valueText(value) : `the same, but ${entries.join(', ')}`;
}

function factsText(explanation: Explanation): string {
  const { type, expected, synonyms = {}, platforms, lockable, effect, driver, flag, docs } = explanation;
  const kind = expected === `a ${type}` ? '' : ` (${type})`;
  const also = Object.entries(synonyms).map(([other, meant]) => `${other} means ${meant}`);
  const rows = [
    ['Takes', [`${expected}${kind}`, ...(also.length === 0 ? [] : [also.join(', ')])].join('; ')],
    ['A change', driver?.partlyLive ? PARTLY_LIVE : EFFECTS[effect]],
  ];
  if (driver) {
    const reason = driver.reason === undefined ? '' : `: ${plainText(driver.reason)}`;
    rows.push(['Driver', `${driver.name}: ${LEVELS[driver.level]}${reason}`]);
  }
  if (platforms.length < PLATFORMS.length) {
    rows.push(['Platforms', platforms.map((platform) => PLATFORM_NAMES[platform]).join(', ') || 'none']);
  }
  for (const [index, row] of managerRows(explanation).entries()) rows.push([index === 0 ? 'Set by' : '', row]);
  if (!lockable) rows.push(['Locks', 'no profile can lock it']);
  rows.push(['Flag', flag ?? 'none; change it with `rdctl apply`'], ['Docs', docs]);
  return tableLines(rows).join('\n');
}

/** Entries of a map that are shown; the rest is counted. */
const SHOWN_ENTRIES = 5;

function managerRows({ managedBy, managedEntries = {} }: Explanation): string[] {
  if (managedBy)
    return ['locked' in managedBy ? `your administrator: ${managedBy.locked}` : managedText(managedBy)].map(plainText);
  const entries = Object.entries(managedEntries);
  const shown = entries.slice(0, SHOWN_ENTRIES).map(([key, manager]) => `${key}: ${managedText(manager)}`);
  const more = entries.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].map(plainText);
}

/** Formats a manager: `team.yaml:4, apply team, at 2026-11-24 12:14:45, generation 3`. */
function managedText({ source, generation, at, ...by }: ManagedBy): string {
  const how = authorText({ by });
  const file = source ? `${managerText({ by, source })}, ` : '';
  return `${file}${how}, ${timeText(at)}, generation ${generation}`;
}

function short(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

/**
 * Resolves a name: a setting by its path, its flag or a former name, or a section, `''` for all. Case-insensitive.
 * @throws RdError `ERR_USAGE` with a suggestion.
 */
function settingNamed(name: string): { field: Field } | { section: string } {
  const asked = name.trim().replace(/^-+/, '').replace(/\.$/, '').toLowerCase();
  if (asked === '') return { section: '' };
  const field = MANAGED_FIELDS.find(({ path, flag }) => isNameOf(asked, path, flag));
  if (field) return { field };
  const section = sections().find((each) => each.toLowerCase() === asked);
  if (section !== undefined) return { section };
  throw unknownSettingError(name.trim());
}

function isNameOf(asked: string, path: string, flag: Field['flag']): boolean {
  return path.toLowerCase() === asked || [flag?.name, ...(flag?.aliases ?? [])].some((each) => each === asked);
}

function sections(): string[] {
  const found = new Set<string>();
  for (const { path } of MANAGED_FIELDS) {
    for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) found.add(path.slice(0, dot));
  }
  return [...found];
}

function unknownSettingError(name: string): RdError {
  const map = MANAGED_FIELDS.find(({ path, type }) => type.startsWith('map') && name.startsWith(`${path}.`));
  if (map) {
    return new RdError('ERR_USAGE', `${JSON.stringify(name)} is an entry of the map ${map.path}`, {
      advice: `Use the map: rdctl explain ${map.path}`,
    });
  }
  const past = pastSetting(name);
  if (past) {
    return new RdError('ERR_USAGE', `${JSON.stringify(name)} ${pastText(past)}`, {
      advice:
        past.now === undefined ? 'List all of them with: rdctl explain' : `Use the new name: rdctl explain ${past.now}`,
    });
  }
  const meant = lastNameMeant(name) ?? nearest(name, [...MANAGED_FIELDS.map(({ path }) => path), ...sections()]);
  return new RdError('ERR_USAGE', `no such setting: ${JSON.stringify(name)}`, {
    advice:
      meant === undefined
        ? 'List all of them with: rdctl explain'
        : `Did you mean ${meant}? List all of them with: rdctl explain`,
  });
}

/** Returns the only setting with this last name, such as `memoryInGB`. */
function lastNameMeant(name: string): string | undefined {
  const last = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  const same = MANAGED_FIELDS.filter(({ path }) => path.slice(path.lastIndexOf('.') + 1).toLowerCase() === last);
  return same.length === 1 ? same[0]?.path : undefined;
}
