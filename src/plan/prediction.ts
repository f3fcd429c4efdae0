import type { Prediction } from './change.ts';
import type { Consequences } from './consequences.ts';
import type { HistoryEntry } from './history.ts';

/** The duration of an earlier change. */
export interface Measurement {
  /** The names of its steps, as in phases, sorted. */
  steps: string;
  ms: number;
  /** RFC 3339. */
  at: string;
}

/** Only the newest measurements count: computers change, and memory stays small. */
export const MOST_MEASUREMENTS = 100;

/** Returns the names of the phases that the loop is going to perform; empty if nothing running is touched. */
export function expectedSteps({ goal, observed, machine, engines, cluster }: Consequences): string[] {
  const steps = new Set<string>();
  const isRunning = observed.machine.state === 'on';
  const engine = observed.engines[goal.engine.name];
  const staysUp = engine.state === 'running' && !engines[goal.engine.name].mustStop;
  if (cluster.mustStop) steps.add('cluster stop');
  if (engines.moby.mustStop || engines.containerd.mustStop) steps.add('engine stop');
  if (machine.mustStop) steps.add('machine stop');
  if (!goal.on) return [...steps].sort();
  if (!isRunning || machine.mustStop) steps.add('machine start');
  else if (machine.drift?.live.length) steps.add('machine adjust');
  if (!staysUp) steps.add('engine start');
  else if (engines[goal.engine.name].drift?.live.length) steps.add('engine adjust');
  if (!goal.cluster) return [...steps].sort();
  if (cluster.mustReset) steps.add('cluster reset');
  if (observed.cluster.state !== 'running' || cluster.mustStop) steps.add('cluster start');
  return [...steps].sort();
}

/** Returns the measurement of an entry, or undefined unless everything in it succeeded and at least one step ran. */
export function measurementOf({ outcome }: Pick<HistoryEntry, 'outcome'>): Measurement | undefined {
  const phases = outcome?.result === 'converged' ? (outcome.phases ?? []) : [];
  if (!outcome || phases.length === 0 || phases.some((phase) => phase.outcome !== 'done' || phase.ms === undefined))
    return undefined;
  const ms = phases.reduce((sum, phase) => sum + (phase.ms ?? 0), 0);
  return { steps: kindOf(phases.map(({ name }) => name)), ms: Math.round(ms), at: outcome.at };
}

/** Returns the expected duration of these steps, or undefined if no earlier change had exactly these steps. */
export function predictionOf(steps: readonly string[], measured: readonly Measurement[]): Prediction | undefined {
  const kind = kindOf(steps);
  const alike = steps.length === 0 ? [] : measured.filter((each) => each.steps === kind);
  const [first] = alike;
  const sorted = alike.map(({ ms }) => ms).sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (!first || middle === undefined) return undefined;
  const ms = sorted.length % 2 === 1 ? middle : Math.round((middle + (sorted[sorted.length / 2 - 1] ?? middle)) / 2);
  return { ms, times: alike.length, since: first.at };
}

function kindOf(steps: readonly string[]): string {
  return [...new Set(steps)].sort().join(', ');
}
