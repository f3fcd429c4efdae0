import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { readHistory } from '../../src/state/history-file.ts';
import { rdctl } from '../helpers/cli.ts';
import { rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';
import { startService, type TestService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** What comes between an apply and its end, after some milliseconds. */
const MEANWHILE = ['nothing', 'set', 'set other', 'put', 'power', 'rollback', 'apply', 'engine ends', 'stop'] as const;

interface Round {
  engine: 'moby' | 'containerd';
  memory: number;
  meanwhile: (typeof MEANWHILE)[number];
  afterMs: number;
  /** The same once more. */
  twice: boolean;
}

const ROUND: fc.Arbitrary<Round> = fc.record({
  engine: fc.constantFrom('moby', 'containerd'),
  memory: fc.integer({ min: 2, max: 4 }),
  meanwhile: fc.constantFrom(...MEANWHILE),
  afterMs: fc.integer({ min: 0, max: 160 }),
  twice: fc.boolean(),
});

/** One home, and services in it one after the other. */
function openHome() {
  const home = temporaryDirectory();
  const cwd = temporaryDirectory();
  const env = { RDCTL_SIMULATED_LATENCY_MS: '15', RDCTL_SIMULATED_FAULTS: 'engine.start:1,machine.start:1' };
  const run = (...argv: string[]) => rdctl(argv, { env: { ...env, RDCTL_HOME: home }, cwd });
  const ends: (() => Promise<void>)[] = [];
  let service: TestService | undefined;
  let serial = 0;

  const serve = async () => {
    service ??= await startService({ home, env, power: 'started' }, (stop) => void ends.push(stop));
    return service;
  };

  async function meanwhile(what: Round['meanwhile']): Promise<void> {
    const at = await serve();
    switch (what) {
      case 'nothing':
        return;
      case 'set':
        return void (await run('set', '--container-engine.name', 'moby', '--virtual-machine.memory-in-gb', '2'));
      case 'set other':
        return void (await run('set', '--images.namespace', `n${serial}`));
      case 'put':
        return void (await at.client.putSettings({ version: 19, virtualMachine: { memoryInGB: 3 } }));
      case 'power':
        return void (await at.client.setBackendState('STOPPED'));
      case 'rollback':
        return void (await run('rollback', '--yes'));
      case 'apply':
        return void (await apply({ engine: 'containerd', memory: 2 }));
      case 'engine ends':
        return endEngine(join(at.here.state, 'drivers', 'simulated', 'machine.json'));
      case 'stop':
        service = undefined;
        return at.service.stop('the test wants it');
    }
  }

  function apply({ engine, memory }: Pick<Round, 'engine' | 'memory'>) {
    serial += 1;
    writeFileSync(
      join(cwd, `${serial}.json`),
      JSON.stringify({
        apiVersion: 'rdctl/v1',
        kind: 'Profile',
        settings: {
          version: 19,
          containerEngine: { name: engine },
          virtualMachine: { memoryInGB: memory },
          kubernetes: { enabled: false },
        },
        state: 'started',
      }),
    );
    return run('apply', '--no-start', '-f', `${serial}.json`);
  }

  return {
    serve,
    apply,
    meanwhile,
    entries: (): Promise<HistoryEntry[]> => readHistory(join(home, 'state', 'history.jsonl')),
    async close() {
      for (const end of ends) await end();
    },
  };
}

function endEngine(file: string): void {
  const model = JSON.parse(readFileSync(file, 'utf8'));
  for (const engine of Object.values<{ process: object }>(model.engines)) engine.process = { state: 'stopped' };
  writeFileSync(file, JSON.stringify(model));
}

/** What is said is so: an apply that ends with success, what runs then, and the history. */
async function play(home: ReturnType<typeof openHome>, round: Round): Promise<'believed' | 'told' | 'open'> {
  const { engine, memory, meanwhile: what, afterMs } = round;
  const service = await home.serve();
  await service.converged().catch(() => undefined);
  let begun = false;
  let over = what === 'nothing';
  const other = (async () => {
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    begun = what !== 'nothing';
    await home.meanwhile(what).finally(() => {
      over = true;
    });
  })();
  const { exit, out, err } = await home.apply(round);
  const [hadBegun, wasOver] = [begun, over];
  const seen = await service.client.status().catch(() => undefined);
  const settings = await service.client.settings().catch(() => undefined);
  const isUndisturbed = hadBegun ? wasOver : !begun;
  const told = `${JSON.stringify(round)}\n${out}${err}`;
  let verdict: 'believed' | 'told' | 'open' = 'told';
  if (exit === 0 && /^(Converged|Nothing to change)/m.test(out)) {
    verdict = isUndisturbed ? 'believed' : 'open';
    // The engine may end between the reply and this look.
    if (isUndisturbed && what !== 'engine ends') {
      expect(seen, told).toMatchObject({
        power: 'started',
        converged: true,
        engine: { name: engine, state: 'running' },
      });
      expect(settings?.settings, told).toMatchObject({ virtualMachine: { memoryInGB: memory } });
    }
  } else expect(`${exit} ${err}`, told).toMatch(/^[1-6] [\s\S]*Error: /);
  await other;
  return verdict;
}

test('an apply that says it has converged has, whatever comes in between', async () => {
  const verdicts = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.array(ROUND, { minLength: 3, maxLength: 6, size: 'max' }), async (list) => {
      const home = openHome();
      try {
        for (const round of list.flatMap((each) => (each.twice ? [each, each] : [each]))) {
          const verdict = await play(home, round);
          verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
        }
        const service = await home.serve();
        await service.converged();
        const { settings } = await service.client.settings();
        const entries = (await home.entries()).filter(({ outcome }) => outcome?.result !== 'not applied');
        const last = entries.findLast(({ changes }) => changes.some(({ path }) => path === 'containerEngine.name'));
        const change = last?.changes.find(({ path }) => path === 'containerEngine.name');
        expect(settings.containerEngine).toMatchObject({ name: change?.after ?? 'moby' });
        // Whatever was not reached does not count as converged: each such entry was the newest when it was.
        for (const [index, { outcome, generation }] of entries.entries()) {
          const next = entries[index + 1];
          if (outcome?.result !== 'converged' || !next) continue;
          expect(`${generation} ${outcome.at <= next.at || next.by.continues !== undefined}`).toBe(
            `${generation} true`,
          );
        }
      } finally {
        await home.close();
      }
    }),
    { numRuns: rounds(4, 300), seed: testSeed(), endOnFailure: process.env.RDCTL_TEST_LONG !== '1' },
  );
  expect(verdicts.get('believed') ?? 0).toBeGreaterThan(0);
  expect(verdicts.get('told') ?? 0).toBeGreaterThan(0);
});
