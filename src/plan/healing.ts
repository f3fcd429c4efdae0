import { healLevel } from '../settings/watch-rules.ts';
import type { Change, DriftState, Plan } from './change.ts';
import { deferralEnd } from './deferral.ts';
import type { Author } from './history.ts';
import type { Drift } from './kept.gen.ts';
import { changeName, type KeptProfile } from './kept.ts';
import { isRuntimeChange } from './runtime-changes.ts';

/** Rounds against a single manager within `CALM_MS` after which healing of a field stops. */
const MOST_ROUNDS = 3;
/** Rounds against all managers together within `CALM_MS` after which healing of a field stops. */
const MOST_ROUNDS_IN_ALL = 3 * MOST_ROUNDS;
/** Milliseconds of agreement after which a field is no longer contested and its rounds are forgotten. */
export const CALM_MS = 60 * 60_000;

/** A write of a field by anything but its kept profile. */
export interface Writer {
  by: Author;
  generation: number;
  /** RFC 3339. */
  at: string;
}

/** The state that a kept profile remembers of one field. */
export interface FieldMemory {
  /** When the drift was first seen, in milliseconds since 1970. */
  since: number;
  /** How often the field was healed against each other manager. */
  rounds: Record<string, number>;
  /** Milliseconds since 1970; absent while it differs. */
  agreesSince?: number;
  /** Healing has stopped, because this manager keeps writing another value. */
  contested?: Writer;
  /** Healing has been paused since this rollback, automatic or not. */
  paused?: Writer;
  /** The last heal failed. */
  failed?: { message: string; attempts: number; retryAt: number };
}

export type { Drift };

export interface JudgeInput {
  profile: KeptProfile;
  /** The changes that the profile would make now. */
  plan: Pick<Plan, 'changes'>;
  /** User files that a setting of the profile determines and that no longer follow it: `key` is the file, `reason` the setting that restores it. */
  files?: readonly Change[];
  memory: ReadonlyMap<string, FieldMemory>;
  /** Returns the last write of a field by another manager. */
  writer(name: string): Writer | undefined;
  /** The rollback or return that reverted the last apply of the profile. */
  undoneBy?: Writer;
  now: number;
  /** IANA name of the time zone of maintenance windows; by default the local time zone. */
  zone?: string | undefined;
}

export interface Judgement {
  drift: Drift[];
  /** The changes to make now. */
  heal: Change[];
  memory: Map<string, FieldMemory>;
  /** When to judge again if nothing else happens, in milliseconds since 1970; absent if time changes nothing. */
  wakeAt?: number;
}

/** Decides how a kept profile responds to each difference between it and the desktop. Pure. */
export function judge(input: JudgeInput): Judgement {
  const { plan, now } = input;
  const result: Judgement = { drift: [], heal: [], memory: new Map() };
  const wake = (at: number) => {
    result.wakeAt = Math.min(result.wakeAt ?? at, at);
  };
  const files = new Set(input.files);
  for (const change of [...plan.changes, ...files]) {
    // The loop restarts stopped parts, whatever a profile says.
    if (isRuntimeChange(change)) continue;
    const { drift, memory, wakeAt } = judgeChange(change, input);
    result.drift.push(files.has(change) ? { ...drift, what: change.reason } : drift);
    result.memory.set(changeName(change), memory);
    if (drift.state === 'healing') result.heal.push(change);
    if (wakeAt !== undefined) wake(wakeAt);
  }
  for (const [name, { failed: _, ...known }] of input.memory) {
    if (result.memory.has(name)) continue;
    const memorable = known.contested || known.paused || Object.keys(known.rounds).length > 0;
    const agreesSince = known.agreesSince ?? now;
    if (!memorable || (!known.paused && now - agreesSince >= CALM_MS)) continue;
    result.memory.set(name, { ...known, agreesSince });
    if (!known.paused) wake(agreesSince + CALM_MS);
  }
  return result;
}

function judgeChange(change: Change, input: JudgeInput): { drift: Drift; memory: FieldMemory; wakeAt?: number } {
  const { profile, now } = input;
  const name = changeName(change);
  const known = recallField(input.memory.get(name), now);
  const writer = input.writer(name);
  const isPending = profile.pending.includes(name);
  const heal = healLevel(profile.watch, change.path);
  const memory: FieldMemory = { ...known };
  if (writer && isRollback(writer) && writer.generation > profile.generation) memory.paused = writer;
  if (isPending && input.undoneBy && !memory.paused) memory.paused = input.undoneBy;
  const evaluation = verdict(change, memory, { ...input, writer, active: isPending || heal === 'enforce' });
  if (evaluation.state === 'contested' && writer && !memory.contested) memory.contested = writer;
  const { before, after, severity, path, key } = change;
  const drift: Drift = {
    path,
    ...opt('key', key),
    ...opt('before', before),
    ...opt('after', after),
    severity,
    heal,
    ...(isPending ? { pending: true as const } : {}),
    state: evaluation.state,
    since: new Date(memory.since).toISOString(),
    ...(evaluation.state === 'deferred' && evaluation.at !== undefined
      ? { until: new Date(evaluation.at).toISOString() }
      : {}),
    ...opt('message', evaluation.message),
    ...opt('by', writer && statedWriter(writer)),
    ...opt('place', profile.places[name] ?? profile.places[path]),
  };
  return { drift, memory, ...opt('wakeAt', evaluation.at) };
}

/** Drift that returns after a calm period starts over. */
function recallField(known: FieldMemory | undefined, now: number): FieldMemory {
  if (!known) return { since: now, rounds: {} };
  const { agreesSince, ...rest } = known;
  if (agreesSince === undefined) return rest;
  const { paused } = known;
  if (now - agreesSince >= CALM_MS) return { since: now, rounds: {}, ...opt('paused', paused) };
  return { ...rest, since: now };
}

interface Verdict {
  state: DriftState;
  message?: string;
  /** When the state changes by itself, in milliseconds since 1970. */
  at?: number;
}

function verdict(
  change: Change,
  memory: FieldMemory,
  { profile, now, zone, writer, active }: Omit<JudgeInput, 'writer'> & { writer: Writer | undefined; active: boolean },
): Verdict {
  if (change.blocked) return { state: 'blocked', message: change.blocked.message };
  if (!active) return { state: 'reported' };
  if (memory.paused) return { state: 'paused', message: pausedText(profile, memory.paused) };
  if (change.severity === 'reset') {
    return { state: 'needs a person', message: 'This destroys data, which the service never does on its own.' };
  }
  if (memory.contested || isContested(memory, writer)) {
    return { state: 'contested', message: contestedText(profile.name, changeName(change), memory.contested ?? writer) };
  }
  const { failed } = memory;
  if (failed && now < failed.retryAt) return { state: 'failed', message: failed.message, at: failed.retryAt };
  const { maintenance } = profile;
  const waits = maintenance !== undefined && change.severity === 'restart';
  const until = waits ? deferralEnd(maintenance, memory.since, now, zone) : undefined;
  return until === undefined ? { state: 'healing' } : { state: 'deferred', at: until };
}

function isContested({ rounds }: FieldMemory, writer: Writer | undefined): boolean {
  const inAll = Object.values(rounds).reduce((sum, count) => sum + count, 0);
  return (rounds[managerOf(writer?.by)] ?? 0) >= MOST_ROUNDS || inAll >= MOST_ROUNDS_IN_ALL;
}

/** True if a rollback, automatic or not, reverted the last apply of a profile, including its deferred changes. */
export function undoes({ by, generation }: Omit<Writer, 'at'>, profile: Pick<KeptProfile, 'generation'>): boolean {
  return generation > profile.generation && by.to !== undefined && by.to < profile.generation;
}

function isRollback({ by }: Writer): boolean {
  return by.how === 'rollback' || by.how === 'return';
}

/** Phrases for the authors that are not commands. */
const KINDS: Readonly<Partial<Record<Author['how'], string>>> = {
  api: 'the API',
  power: 'a change of power',
  return: 'an automatic return',
};

/** Returns the author of a write as a phrase. Two writes with the same phrase are by the same manager. */
export function managerOf(by: Author | undefined): string {
  if (!by) return 'an unknown writer';
  const { how, token, profile, files, program } = by;
  if (how === 'policy') return 'the deployment profile';
  const kind = KINDS[how] ?? `\`${how}\``;
  const name = profile ?? (files ?? []).map(({ path }) => path).join(', ');
  const who = [...(token === undefined ? [] : [`token ${token}`]), ...(program === undefined ? [] : [program])];
  return `${kind}${name === '' ? '' : ` of ${name}`}${who.length === 0 ? '' : ` (${who.join(', ')})`}`;
}

function pausedText({ name }: KeptProfile, { by, generation }: Writer): string {
  const what = by.how === 'return' ? KINDS.return : 'a rollback';
  return `Healing is paused since ${what} (generation ${generation}); apply ${name} again to continue.`;
}

/** Returns a sentence naming both sides of a contested field. `field`: as formatted by `changeName`. */
export function contestedText(profile: string, field: string, writer: Writer | undefined): string {
  const last = writer ? ` (last in generation ${writer.generation}, at ${writer.at})` : '';
  return `"${field}" is contested: the kept profile ${profile} and ${managerOf(writer?.by)}${last} keep setting it to different values. It is no longer healed: end one of the two, then apply ${profile} again or release it.`;
}

function statedWriter({ by, generation, at }: Writer): NonNullable<Drift['by']> {
  const { how, program, profile, token } = by;
  return {
    how,
    ...opt('program', program),
    ...opt('profile', profile),
    ...opt('token', token),
    generation,
    at,
    manager: managerOf(by),
  };
}

/** Returns an object with one member, or an empty one if the value is undefined. */
function opt<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [key in K]?: V });
}
