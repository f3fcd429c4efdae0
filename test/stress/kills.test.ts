import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import type { Client } from '../../src/client/contract.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';
import { isAlive, killsHome, usageOf } from './kills/home.ts';
import { chosen, HELD, healed, type Operation, type State } from './kills/operations.ts';

/** Milliseconds for the search; the final checks take a few seconds more. */
const LIMIT = rounds(32_000, 3_000_000);
const KILLS = rounds(20, 500);

const KEEPABLE = {
  ...{ apiVersion: 'rdctl/v1', kind: 'Profile', metadata: { name: 'held' } },
  settings: { version: 19, ...HELD },
  watch: { heal: 'enforce' },
};

/** Numbers in [0, 1) from a seed. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function split(settings: JsonObject): JsonObject {
  const { application, ...rest } = structuredClone(settings);
  const { extensions, ...others } = application as JsonObject;
  const { installed: _, ...allowed } = extensions as JsonObject;
  return { ...rest, application: { ...others, extensions: allowed } };
}

test('killing service and tool at any moment loses nothing, leaves nothing behind and changes nothing foreign', async () => {
  const scene = killsHome();
  const { home, env, rdctl } = scene;
  const next = random(testSeed());
  const trace: string[] = [];
  const told = () => `after\n${trace.slice(-6).join('\n')}`;
  const usual = new Map<string, number>();
  const keepable = join(env.HOME ?? '', 'keepable.json');
  /** Writes against the kept profile since it was applied; the third makes the field contested. */
  let contradictions = 0;
  let measured: { pid: number; files: number; bytes: number } | undefined;
  /** The last operation, if its tool was killed and the service has not shown that it got the request: that may still come. */
  let late: Operation[] = [];

  const client = (): Client => {
    const { port, user, password } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
    return createClient({ host: '127.0.0.1', port, user, password, foreign: false, reached: { by: 'word' } } as const);
  };

  /** The next start works, and unfinished work is done. */
  async function recovered(): Promise<Client> {
    const { exit, err } = await rdctl('start', '--wait', '--wait-timeout=60s');
    expect([exit, err], told()).toEqual([0, expect.any(String)]);
    const service = client();
    await service.request({ method: 'POST', path: '/v1/snapshots/cancel' });
    await expect
      .poll(
        async () => {
          const { converged, maintenance } = await service.status();
          return { converged, maintenance };
        },
        { message: told() },
      )
      .toEqual({ converged: true, maintenance: undefined });
    return service;
  }

  /** Waits until the kept profile is healed; a contested one is applied again. */
  async function inSync(service: Client): Promise<void> {
    const states = async () => ((await service.status()).kept ?? []).map(({ state }) => state);
    const isOver = async () => (await states()).every((state) => state === 'in sync' || state === 'contested');
    await expect.poll(isOver, { message: told() }).toBe(true);
    if (!(await states()).includes('contested')) return;
    expect(contradictions, told()).toBeGreaterThanOrEqual(3);
    contradictions = 0;
    expect(await rdctl('apply', '-f', keepable), told()).toMatchObject({ exit: 0 });
    await expect.poll(states, { message: told() }).toEqual(['in sync']);
  }

  async function observed(service: Client): Promise<State> {
    const json = async (path: string) => JSON.parse((await service.request({ method: 'GET', path })).body.toString());
    const names: string[] = (await json('/v1/snapshots')).map(({ name }: { name: string }) => name);
    const snapshots = names.map(async (name) => [name, split(await scene.snapshotSettings(name))] as const);
    const extensions: Record<string, { version: string }> = await json('/v1/extensions');
    return {
      settings: split((await service.settings()).settings),
      extensions: Object.entries(extensions)
        .map(([id, { version }]) => `${id}:${version}`)
        .sort(),
      snapshots: Object.fromEntries(await Promise.all(snapshots)),
      kept: (await service.status()).kept?.length === 1,
    };
  }

  /** The same while requests of killed tools may be carried out between two looks. */
  async function settled(outcomes: readonly State[]): Promise<State> {
    const patience = Date.now() + 60_000;
    for (;;) {
      try {
        return await check(await recovered(), outcomes);
      } catch (error) {
        if (Date.now() > patience) throw error;
      }
    }
  }

  async function check(service: Client, outcomes: readonly State[]): Promise<State> {
    await inSync(service);
    const found = await observed(service);
    const fits = outcomes.some((outcome) => isDeepStrictEqual(outcome, found));
    if (!fits) expect(found, `${told()}\n${differences(found, outcomes)}`).toEqual(outcomes.at(-1));
    const stored = JSON.parse(readFileSync(join(home, 'config', 'settings.json'), 'utf8'));
    expect(split(stored), told()).toEqual(found.settings);
    await scene.checkSnapshots(Object.keys(found.snapshots));
    scene.checkOthers();
    await expect.poll(() => problem(scene.checkFiles), { message: told() }).toBeUndefined();
    const pid = scene.servicePid() ?? 0;
    const { files, bytes } = usageOf(pid);
    if (measured?.pid !== pid) measured = { pid, files, bytes };
    // Connections come and go; a leak per operation would exceed this after a few of them.
    expect(files, told()).toBeLessThan(measured.files + 24);
    expect(bytes, told()).toBeLessThan(measured.bytes + 192 * 1024 ** 2);
    return found;
  }

  function previousSettings(present: JsonObject): JsonObject {
    try {
      return split(JSON.parse(readFileSync(join(home, 'config', 'settings.previous.json'), 'utf8')));
    } catch {
      return present;
    }
  }

  /** Runs it, and kills the tool, the service, or both at some point. True if the service may still be to get the request. */
  async function killedIn({ argv }: Operation): Promise<boolean> {
    const kind = argv.slice(0, 2).join(' ');
    const limit = usual.get(kind) ?? 900;
    const victims = ['service', 'tool', 'both'][Math.floor(next() * 3)] ?? '';
    const after = Math.floor(next() * limit * 1.1);
    trace.push(`${argv.join(' ')}: kill of ${victims} after ${after} ms`);
    const begun = Date.now();
    let ended = false;
    let tool = 0;
    const onSpawn = ({ pid = 0 }: { pid?: number | undefined }) => {
      tool = pid;
    };
    const outcome = rdctlProgram(argv, { env, onSpawn }).then((result) => {
      ended = true;
      usual.set(kind, (limit + Date.now() - begun) / 2);
      return result;
    });
    await Promise.race([outcome, new Promise((resolve) => setTimeout(resolve, after))]);
    const service = victims === 'tool' && !ended ? undefined : scene.servicePid();
    const unanswered = !ended && victims === 'tool';
    if (!ended && victims !== 'service') process.kill(tool, 'SIGKILL');
    if (service !== undefined) killed(service);
    const { exit, err } = await outcome;
    trace.push(`  exit ${exit} ${err.trim().split('\n').at(-1) ?? ''}`);
    if (service !== undefined) await expect.poll(() => isAlive(service), { message: told() }).toBe(false);
    return unanswered;
  }

  const defaults = (await observed(await recovered())).settings;
  // As a profile of the user: foreign files must stay as they are.
  writeFileSync(keepable, JSON.stringify(KEEPABLE));
  expect(await rdctl('apply', '--keep', '-f', keepable)).toMatchObject({ exit: 0 });
  let present = await observed(client());
  expect(present.kept).toBe(true);
  const deadline = Date.now() + LIMIT;
  let kills = 0;
  for (; kills < KILLS && Date.now() < deadline; kills += 1) {
    const operation = chosen(next, {
      serial: kills,
      present,
      defaults,
      previous: previousSettings(present.settings),
      profile(settings) {
        const path = join(env.HOME ?? '', 'profile.json');
        writeFileSync(path, JSON.stringify({ version: 19, ...settings }));
        return path;
      },
      keepable,
    });
    if (operation.contradicts) contradictions += 1;
    const unanswered = await killedIn(operation);
    const before = present;
    const possible = reachable(before, [...late, operation]);
    present = await (unanswered || late.length > 0 ? settled(possible) : check(await recovered(), possible));
    late = unanswered && isDeepStrictEqual(before, present) ? [operation] : [];
  }
  expect(kills).toBeGreaterThanOrEqual(Math.min(KILLS, 5));

  // A service that has ended gets no more requests.
  await rdctl('shutdown');
  present = await check(await recovered(), reachable(present, late));
  // Every listed snapshot can be restored, and in the end all our files are removed.
  for (const [name, settings] of Object.entries(present.snapshots)) {
    expect(await rdctl('snapshot', 'restore', name), told()).toMatchObject({ exit: 0 });
    present = await check(client(), reachable({ ...present, settings }, []));
    expect(await rdctl('snapshot', 'delete', name), told()).toMatchObject({ exit: 0 });
    const { [name]: _, ...snapshots } = present.snapshots;
    present = { ...present, snapshots };
  }
  expect(await rdctl('reset', '--factory', '--cache', '--yes'), told()).toMatchObject({ exit: 0 });
  scene.checkClean();
});

/** The states after none, some or all of the operations, in any order; what the kept profile heals is healed at any moment. */
function reachable(before: State, operations: readonly Operation[]): State[] {
  const found = new Map<string, State>();
  function visit(state: State, left: readonly Operation[]): void {
    found.set(JSON.stringify(healed(state)), healed(state));
    for (const each of left) {
      const others = left.filter((other) => other !== each);
      for (const after of each.outcomes(state)) for (const next of [after, healed(after)]) visit(next, others);
    }
  }
  visit(before, operations);
  return [...found.values()];
}

/** Where each possible state differs. */
function differences(found: State, outcomes: readonly State[]): string {
  return outcomes.map((outcome) => difference('', found, outcome).join(', ')).join('\n');
}

function difference(path: string, found: unknown, other: unknown): string[] {
  if (isDeepStrictEqual(found, other)) return [];
  if (!isObject(found) || !isObject(other)) return [`${path}: ${JSON.stringify(found)}, not ${JSON.stringify(other)}`];
  const names = new Set([...Object.keys(found), ...Object.keys(other)]);
  return [...names].flatMap((name) => difference(`${path}/${name}`, found[name], other[name]));
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It exited by itself.
  }
}

function problem(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return String(error);
  }
}
