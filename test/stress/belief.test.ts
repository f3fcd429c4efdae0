import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import type * as Targets from '../../src/features/host-integration/targets.ts';
import type { HistoryEntry, RecordedChange } from '../../src/plan/history.ts';
import { LONG, rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';
import { type BeliefHome, openHome } from './belief/home.ts';
import { type Deed, type Round, type Story, storyArbitrary } from './belief/rounds.ts';

/** A simulation in a home of its own leaves the files of the user alone; here it has a user of its own. */
vi.mock('../../src/features/host-integration/targets.ts', async (original) => {
  const { integrationTargets } = await original<typeof Targets>();
  const ofUser: typeof integrationTargets = ({ places: { home: _, ...places }, ...input }) => {
    const targets = integrationTargets({ ...input, places, simulated: false });
    return 'offBecause' in targets ? targets : { ...targets, systemSocket: `${input.homedir}/no-docker.sock` };
  };
  return { integrationTargets: ofUser };
});

/** Homes that are played at once: most of their time is waiting. */
const AT_ONCE = { inside: 5, program: 3 };

/** What comes this shortly before the end of an apply may have come after its last look. */
const LAST_LOOK_MS = 150;

/** A change is in the history before it takes effect; until then the one before it can converge. */
const RECORDING_MS = 500;

/** These do not wait until what they did has shown. */
const SUDDEN: readonly Deed[] = ['engine ends', 'file in the way'];

type Verdict = 'believed' | 'told' | 'open';

/** What is said is so: an apply that ends with success, what runs then, and the history. */
async function play(home: BeliefHome, round: Round): Promise<Verdict> {
  const { engine, memory, extension, meanwhile: deed } = round;
  const client = await home.serve();
  await home.settled(client).catch(() => undefined);
  const { generation: first = 0 } = await client.status().catch(() => ({ generation: 0 }));
  let ended = false;
  let begunAt: number | undefined;
  let over = false;
  const hasWritten = () =>
    client.status().then(
      ({ generation }) => generation > first,
      () => true,
    );
  const other = (async () => {
    if (round.since === 'write') while (!ended && !(await hasWritten())) await pause(5);
    await pause(round.afterMs);
    begunAt = Date.now();
    await home.meanwhile(deed).finally(() => {
      over = true;
    });
  })();
  const { exit, out, err, file } = await home.apply(round);
  ended = true;
  const endedAt = Date.now();
  const wasOver = over;
  const status = await client.status().catch(() => undefined);
  const settings = await client.settings().catch(() => undefined);
  const files = home.userFiles();
  const hadBegun = deed !== 'nothing' && begunAt !== undefined;
  const isOpen = hadBegun && (!wasOver || SUDDEN.includes(deed) || endedAt - (begunAt ?? 0) < LAST_LOOK_MS);
  await other.catch(() => undefined);
  const told = `${JSON.stringify(round)}\n${out}${err}`;
  if (exit !== 0) {
    expect(`${exit} ${err}`, told).toMatch(/^[1-6] [\s\S]*Error: /);
    return 'told';
  }
  expect(out, told).toMatch(/^(Converged|Nothing to change)/m);
  await checkHistory(home, { ...round, file, told });
  if (isOpen) return 'open';
  expect(status, told).toMatchObject({ power: 'started', converged: true, engine: { name: engine, state: 'running' } });
  expect(settings?.settings, told).toMatchObject({
    virtualMachine: { memoryInGB: memory },
    application: { extensions: { installed: extension === undefined ? {} : { 'simulated/hello': extension } } },
  });
  if (files) {
    expect(files, told).toEqual({ context: engine === 'moby' ? 'rdctl' : 'default', shell: true });
    const { generation, hostIntegration } = status ?? {};
    expect(hostIntegration?.observedGeneration, told).toBe(generation);
  }
  return 'believed';
}

/** The history does not contradict an apply that said that it had converged. */
async function checkHistory(
  home: BeliefHome,
  { engine, memory, meanwhile: deed, file, told }: Round & Record<'file' | 'told', string>,
) {
  const mine = (entries: HistoryEntry[]) => entries.findIndex(({ by }) => by.files?.some(({ path }) => path === file));
  const written = await home.entries();
  // Nothing had to be changed.
  if (mine(written) === -1) return;
  const wanted = { 'containerEngine.name': engine, 'virtualMachine.memoryInGB': memory, state: 'started' };
  const outcome = async () => {
    const entries = await home.entries();
    for (const { changes, outcome: end, by } of entries.slice(mine(entries))) {
      const against = changes.filter(
        ({ path, after }) => path in wanted && after !== wanted[path as keyof typeof wanted],
      );
      if (against.length > 0) return `replaced by ${JSON.stringify({ by, changes: against })}`;
      if (end?.result !== 'superseded') return end?.result ?? 'open';
    }
    return 'superseded';
  };
  // An outcome is written afterwards, which a full disk or a kill may prevent.
  if (deed === 'kill' || deed === 'full disk') expect(['converged', 'open'], told).toContain(await outcome());
  else await expect.poll(outcome, { message: told, timeout: 5_000 }).toBe('converged');
}

/** In the end what is in force is what the history says. */
async function checkEnd(home: BeliefHome): Promise<void> {
  const client = await home.serve();
  await home.settled(client);
  const { settings } = await client.settings();
  const entries = (await home.entries()).filter(({ outcome }) => outcome?.result !== 'not applied');
  const last = entries.findLast(({ changes }) => changes.some(({ path }) => path === 'containerEngine.name'));
  const change = last?.changes.find(({ path }) => path === 'containerEngine.name');
  expect(settings.containerEngine).toMatchObject({ name: change?.after ?? 'moby' });
  // Whatever was not reached when it was changed again, or turned off, does not count as converged, not even once a later change has.
  for (const [index, { outcome, changes }] of entries.entries()) {
    const next = entries
      .slice(index + 1)
      .find((later) => later.by.continues === undefined && later.changes.some((change) => isAgainst(change, changes)));
    if (outcome?.result !== 'converged' || !next) continue;
    const isInTime = Date.parse(outcome.at) <= Date.parse(next.at) + RECORDING_MS;
    const isBefore = next.outcome === undefined || outcome.at < next.outcome.at;
    expect(isInTime && isBefore, `entry ${index} of ${JSON.stringify(entries)}`).toBe(true);
  }
}

function isAgainst({ path, key, after }: RecordedChange, changes: readonly RecordedChange[]): boolean {
  return (path === 'state' && after === 'stopped') || changes.some((one) => one.path === path && one.key === key);
}

async function tell(story: Story, verdicts: Map<Verdict, number>): Promise<void> {
  const home = openHome(story);
  try {
    for (const round of story.rounds.flatMap((each) => (each.twice ? [each, each] : [each]))) {
      const verdict = await play(home, round);
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
    }
    await checkEnd(home);
  } catch (error) {
    throw new Error(`${JSON.stringify(story)}\n${error instanceof Error ? error.stack : error}`, { cause: error });
  } finally {
    await home.close();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

test.each(['inside', 'program'] as const)(
  'an apply that says it has converged has, whatever comes in between, with the service %s',
  async (kind) => {
    const verdicts = new Map<Verdict, number>();
    const several = { minLength: AT_ONCE[kind], maxLength: AT_ONCE[kind] };
    await fc.assert(
      fc.asyncProperty(fc.array(storyArbitrary(kind), several), async (stories) => {
        const results = await Promise.allSettled(stories.map((story) => tell(story, verdicts)));
        for (const result of results) if (result.status === 'rejected') throw result.reason;
      }),
      { numRuns: rounds(1, 75), seed: testSeed(), endOnFailure: !LONG },
    );
    expect(verdicts.get('believed') ?? 0).toBeGreaterThan(0);
    expect(verdicts.get('told') ?? 0).toBeGreaterThan(0);
  },
);
