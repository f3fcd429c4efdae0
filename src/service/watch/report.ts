import { defined } from '../../json.ts';
import type { DriftState } from '../../plan/change.ts';
import { contestedText, type Drift } from '../../plan/healing.ts';
import { changeName } from '../../plan/kept.ts';
import type { Condition } from '../../reconcile/contract.ts';
import type { KeptStatus } from '../../reconcile/status-document.ts';
import { momentText } from '../../settings/maintenance-window.ts';
import type { KeptRecord } from '../../state/kept-file.ts';

/** A kept profile with the results of its last comparison. */
export interface Watched extends KeptRecord {
  drift: Drift[];
  /** Why the profile cannot be compared, as a sentence. */
  unusable?: string;
}

export function keptStatus({ profile, drift, unusable, fields }: Watched): KeptStatus {
  const contested = Object.entries(fields).flatMap(([path, { contested: writer }]) =>
    writer ? [{ path, message: contestedText(profile.name, path, writer) }] : [],
  );
  return {
    name: profile.name,
    files: profile.files.map(({ path }) => path),
    appliedAt: profile.appliedAt,
    generation: profile.generation,
    watch: profile.watch,
    ...(profile.maintenance ? { window: profile.maintenance.window } : {}),
    state: unusable === undefined ? stateOf(drift, contested.length > 0) : 'unusable',
    ...defined({ message: unusable }),
    drift,
    contested,
  };
}

function stateOf(drift: readonly Drift[], isContested: boolean): KeptStatus['state'] {
  const has = (...states: DriftState[]) => drift.some(({ state }) => states.includes(state));
  if (isContested) return 'contested';
  if (has('reported', 'blocked', 'needs a person', 'failed')) return 'drifted';
  if (has('paused')) return 'paused';
  if (has('deferred')) return 'deferred';
  return has('healing') ? 'healing' : 'in sync';
}

/** Returns the condition of each profile with contested fields. `generation` is that of the desired state. */
export function contestedConditions(watched: readonly Watched[], generation: number): Condition[] {
  return watched.flatMap(({ profile, fields }) => {
    const contested = Object.entries(fields).flatMap(([name, { contested: writer }]) =>
      writer ? [{ name, writer }] : [],
    );
    const [first] = contested;
    if (!first) return [];
    return [
      {
        type: 'Contested' as const,
        status: 'True' as const,
        reason: 'TwoManagers',
        concern: 'attention' as const,
        message: contested.map(({ name, writer }) => contestedText(profile.name, name, writer)).join(' '),
        observedGeneration: generation,
        lastTransitionTime: first.writer.at,
      },
    ];
  });
}

/** Returns the notices that every command shows: drift that the profile warns about, and decisions that a person has to make. */
export function keptNotices(kept: readonly KeptStatus[], now: number, zone?: string): string[] {
  return kept.flatMap(({ name, drift, message }) => [
    ...(message === undefined ? [] : [message]),
    ...drift.flatMap((each) => driftNotice(name, each, now, zone) ?? []),
  ]);
}

function driftNotice(profile: string, drift: Drift, now: number, zone?: string): string | undefined {
  const field = changeName(drift);
  const { state, heal, until, message, by } = drift;
  switch (state) {
    case 'reported': {
      if (heal !== 'warn') return undefined;
      const who = by ? ` (${by.manager}, generation ${by.generation})` : '';
      return `"${field}" differs from the kept profile ${profile}${who}. See \`rdctl kept\`.`;
    }
    case 'deferred':
      return `"${field}" of the kept profile ${profile} needs a restart, deferred until ${momentText(Date.parse(until ?? ''), now, zone)}.`;
    case 'needs a person':
    case 'failed':
      return `"${field}" differs from the kept profile ${profile}. ${message ?? ''}`;
    case 'paused':
      return `"${field}" differs from the kept profile ${profile}. ${message ?? ''}`;
    case 'contested':
      return message;
    // A lock wins as long as it exists; the status shows it.
    case 'blocked':
    case 'healing':
      return undefined;
  }
}
