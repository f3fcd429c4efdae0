import { isObject, type JsonValue } from '../json.ts';
import type { Change, Plan, Sensitive } from '../plan/change.ts';
import type { Author, HistoryEntry } from '../plan/history.ts';
import { equal, own } from '../settings/own.ts';
import { type FieldManager, fieldName, isRemoved } from '../state/field-managers.ts';
import { whenText } from './when.ts';

/** The manager of a field, in the JSON of `explain` and `diff`. */
export interface ManagedBy extends Omit<Author, 'consent' | 'continues'> {
  /** The line of a file that asks for the value. */
  source?: { file: string; line: number };
  generation: number;
  /** Time of the write in RFC 3339. */
  at: string;
}

export function managedBy({ by, source, generation, at }: FieldManager): ManagedBy {
  const { consent: _consent, continues: _continues, ...author } = by;
  return { ...author, ...(source ? { source } : {}), generation, at };
}

/** Returns the writer of the live value of a change; undefined if none is known. */
export function managerOf(
  managers: readonly FieldManager[],
  change: Pick<Change, 'path' | 'key' | 'before'>,
): FieldManager | undefined {
  const name = fieldName(change);
  const manager = managers.find((each) => fieldName(each) === name);
  return manager && hasSet(manager, change.before) ? manager : undefined;
}

/** Returns the managers of a setting with its live value; several only for a map. */
export function managersAt(
  managers: readonly FieldManager[],
  path: string,
  live: JsonValue | undefined,
): FieldManager[] {
  const liveOf = ({ key }: FieldManager) => (key === undefined ? live : isObject(live) ? own(live, key) : undefined);
  return managers.filter((manager) => manager.path === path && !isRemoved(manager) && hasSet(manager, liveOf(manager)));
}

/** Whether a manager set the live value; false if it came about in another way, such as by editing the settings file. Secrets are not compared. */
function hasSet({ after }: FieldManager, live: JsonValue | Sensitive | undefined): boolean {
  return isSecret(after) || isSecret(live) || equal(after, live);
}

function isSecret(value: JsonValue | Sensitive | undefined): value is Sensitive {
  return isObject(value) && value.sensitive === true;
}

/** Names the writer of a value: `team.yaml:4`, `token ci-bot`, `rdctl set`. With `whole`, files are named with their directories. */
export function managerText({ by, source }: Pick<FieldManager, 'by' | 'source'>, whole = false): string {
  const name = (path: string) => (whole ? path : path.slice(path.lastIndexOf('/') + 1));
  const token = by.token === undefined ? undefined : `token ${by.token}`;
  if (by.how === 'rollback' || by.how === 'return') {
    const to = by.to === undefined ? '' : ` to generation ${by.to}`;
    return withToken(by.how === 'rollback' ? `a rollback${to}` : `a return${to} after a failed apply`, token);
  }
  const files = source
    ? `${name(source.file)}:${source.line}`
    : by.files?.map(({ path }) => (path === '-' ? 'standard input' : name(path))).join(' and ');
  const profile = files || (by.profile === undefined ? undefined : `the profile ${by.profile}`);
  if (profile !== undefined) return withToken(by.how === 'heal' ? `the healing of ${profile}` : profile, token);
  return token ?? MEANS[by.how];
}

function withToken(text: string, token: string | undefined): string {
  return token === undefined ? text : `${text} with ${token}`;
}

const MEANS: Readonly<Record<Author['how'], string>> = {
  start: '`rdctl start`',
  policy: 'a deployment profile',
  edit: 'an edit of settings.json',
  apply: 'a saved plan',
  rollback: 'a rollback',
  return: 'a return after a failed apply',
  heal: 'a watched profile',
  set: '`rdctl set`',
  api: 'a program',
  power: 'a start or stop',
  restore: 'a restored snapshot',
  reset: 'a reset',
  'factory reset': 'a factory reset',
  service: 'the service',
};

/** The profile being planned. */
interface Planned {
  /** Files of the profile; each absolute, or `-`. */
  files: readonly string[];
  profile?: string;
}

/** Fields that one warning names; the rest are counted. */
const NAMED = 3;

/**
 * Describes changes of a plan to values that something else has set, one sentence for each other manager. Profiles and tokens count whenever they set
 * the value: they are likely to set it again. A person's write, such as `set` or a rollback, counts if it came after the last apply of this profile:
 * before, it was there to be replaced. Starts and stops are no disagreement.
 * @param now milliseconds since the epoch.
 */
export function takeovers(
  { changes }: Pick<Plan, 'changes'>,
  managers: readonly FieldManager[],
  entries: readonly HistoryEntry[],
  planned: Planned,
  now: number,
): string[] {
  const last = lastApply(managers, entries, planned);
  const others = new Map<number, { manager: FieldManager; fields: string[] }>();
  for (const { blocked, ...change } of changes) {
    const manager = blocked ? undefined : managerOf(managers, change);
    if (!manager || !disagrees(manager, planned, last)) continue;
    const group = others.get(manager.generation) ?? { manager, fields: [] };
    group.fields.push(change.key === undefined ? `"${change.path}"` : `"${change.path}[${change.key}]"`);
    others.set(manager.generation, group);
  }
  return [...others.values()].map(({ manager, fields }) => {
    const { by, generation, at } = manager;
    const [were, them] = fields.length === 1 ? ['was', 'it'] : ['were', 'them'];
    const who = `${managerText({ by }, true)} ${whenText(at, now)} (generation ${generation})`;
    return `${fieldList(fields)} ${were} set by ${who}; this profile takes ${them} over.`;
  });
}

function disagrees({ by, path, generation }: FieldManager, planned: Planned, last: number | undefined): boolean {
  if (isSame(by, planned)) return false;
  const isProgram = by.token !== undefined || (by.files?.length ?? 0) > 0 || by.profile !== undefined;
  if (isProgram) return true;
  return path !== 'state' && last !== undefined && generation > last;
}

/** Whether an author is the planned profile. Files identify a profile; a healed one may be known by its name alone. */
function isSame({ files = [], profile }: Author, planned: Planned): boolean {
  if (files.length > 0) return files.some(({ path }) => planned.files.includes(path));
  return profile !== undefined && profile === planned.profile;
}

/** Returns the generation of the last apply of this profile that changed something. */
function lastApply(
  managers: readonly FieldManager[],
  entries: readonly HistoryEntry[],
  planned: Planned,
): number | undefined {
  const applied = [...managers, ...entries.filter(({ outcome }) => outcome?.result !== 'not applied')]
    .filter(({ by }) => isSame(by, planned))
    .map(({ generation }) => generation);
  return applied.length === 0 ? undefined : Math.max(...applied);
}

function fieldList(fields: readonly string[]): string {
  if (fields.length === 1) return fields[0] ?? '';
  const named = fields.length > NAMED ? fields.slice(0, NAMED - 1) : fields.slice(0, -1);
  const rest = fields.length > NAMED ? `${fields.length - named.length} more settings` : fields.at(-1);
  return `${named.join(', ')} and ${rest}`;
}
