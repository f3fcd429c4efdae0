import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import type { Client } from '../../../src/client/contract.ts';
import { pollStatus, waitConverged } from '../../../src/client/converge.ts';
import { systemClock } from '../../../src/os/clock.ts';
import type { HistoryEntry } from '../../../src/plan/history.ts';
import { readHistory } from '../../../src/state/history-file.ts';
import { lockHolder } from '../../../src/state/home-lock.ts';
import { type Outcome, rdctl } from '../../helpers/cli.ts';
import { EARLIER_HOMES, type EarlierHome, unpack } from '../../helpers/earlier-home.ts';
import { fillDisk, mountSmallDisk } from '../../helpers/full-disk.ts';
import { startService, type TestService } from '../../helpers/service.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';
import { isAlive } from '../kills/home.ts';
import type { Deed, Round, Story } from './rounds.ts';

type Asked = Pick<Round, 'engine' | 'memory' | 'extension'>;

/** One home, and services in it one after the other. */
export interface BeliefHome {
  /** A client of the service, which is started unless it runs. */
  serve(): Promise<Client>;
  settled(client: Client): Promise<void>;
  /** The file is in `HistoryEntry.by.files`. */
  apply(asked: Asked): Promise<Outcome & { file: string }>;
  meanwhile(deed: Deed): Promise<void>;
  entries(): Promise<HistoryEntry[]>;
  /** Whether a user's docker and shells use what runs; undefined where the service leaves them alone. */
  userFiles(): { context: string; shell: boolean } | undefined;
  close(): Promise<void>;
}

/** How long a disk is full, or a file in the way. */
const MOMENT_MS = 120;

const SMALL = '6m';
const EXTENSION = 'simulated/hello';

/** Homes from before there was a history cannot say what an apply became. */
const BEGINNINGS = EARLIER_HOMES.filter(({ files }) => 'home/state/history.jsonl' in files) as [EarlierHome];

export function openHome({ kind, begin, earlier }: Pick<Story, 'kind' | 'begin' | 'earlier'>): BeliefHome {
  const before = BEGINNINGS[earlier % BEGINNINGS.length] ?? BEGINNINGS[0];
  const home = begin === 'earlier' ? unpack(before).home : temporaryDirectory();
  const unmount = begin === 'small disk' ? mountSmallDisk(home, SMALL) : () => undefined;
  const cwd = temporaryDirectory();
  const user = temporaryDirectory();
  const dockerConfig = join(user, '.docker', 'config.json');
  writeFileSync(join(user, '.bashrc'), '# mine\n');
  const env = {
    ...{ RDCTL_HOME: home, HOME: user, RDCTL_DRIVER: 'simulated', RDCTL_CONNECTIVITY_URL: 'http://127.0.0.1:9/' },
    ...{ RDCTL_SIMULATED_LATENCY_MS: '15', RDCTL_SIMULATED_FAULTS: 'engine.start:1,machine.start:1' },
  };
  const run = (...argv: string[]) => rdctl(argv, { env, cwd });
  const ends: (() => Promise<void>)[] = [];
  const connectionFile = join(home, 'app-engine.json');
  const modelFile = join(home, 'state', 'drivers', 'simulated', 'machine.json');
  let inside: TestService | undefined;
  let serial = 0;

  async function servicePid(): Promise<number | undefined> {
    const holder = await lockHolder(join(home, 'state', 'service.lock'));
    return holder?.alive && isAlive(holder.pid) ? holder.pid : undefined;
  }

  async function serve(): Promise<Client> {
    if (kind === 'inside') {
      const options = { home, env, power: 'started', self: ['/usr/bin/node', '/opt/rdctl.cjs'] } as const;
      inside ??= await startService(options, (stop) => void ends.push(stop));
      return inside.client;
    }
    if ((await servicePid()) === undefined) {
      const { exit, err } = await run('start', '--wait', '--wait-timeout=60s');
      expect([exit, err]).toEqual([0, expect.any(String)]);
    }
    const { port, user: name, password } = JSON.parse(readFileSync(connectionFile, 'utf8'));
    const reached = { host: '127.0.0.1', port, user: name, password, foreign: false, reached: { by: 'word' } } as const;
    return createClient(reached);
  }

  async function stopInside(): Promise<void> {
    const service = inside?.service;
    inside = undefined;
    await service?.stop('the test wants it');
  }

  /** Of the service as a program. */
  async function end(signal: NodeJS.Signals): Promise<void> {
    const pid = await servicePid();
    if (pid === undefined) return;
    process.kill(pid, signal);
    await expect.poll(() => isAlive(pid)).toBe(false);
  }

  async function meanwhile(deed: Deed): Promise<void> {
    switch (deed) {
      case 'nothing':
        return;
      case 'set':
        return void (await run('set', '--container-engine.name', 'moby', '--virtual-machine.memory-in-gb', '2'));
      case 'set other':
        return void (await run('set', '--images.namespace', `n${serial}`));
      case 'put':
        return void (await (await serve()).putSettings({ version: 19, virtualMachine: { memoryInGB: 3 } }));
      case 'power':
        return void (await (await serve()).setBackendState('STOPPED'));
      case 'rollback':
        return void (await run('rollback', '--yes'));
      case 'apply':
        return void (await apply({ engine: 'containerd', memory: 2, extension: undefined }));
      case 'engine ends':
        return endEngine(modelFile);
      case 'shutdown':
        // The process of a service inside does not exit.
        await run('shutdown', ...(kind === 'inside' ? ['--wait=false'] : []));
        return kind === 'inside' ? stopInside() : undefined;
      case 'stop':
        return kind === 'inside' ? stopInside() : end('SIGTERM');
      case 'kill':
        return end('SIGKILL');
      case 'full disk': {
        const free = await fillDisk(home);
        await moment();
        return free();
      }
      case 'file in the way': {
        // Both ways in one step: whoever looks while there is no file takes docker for told to leave our context.
        const aside = `${dockerConfig}.aside`;
        const directory = `${dockerConfig}.directory`;
        mkdirSync(join(directory, 'in the way'), { recursive: true });
        symlinkSync(directory, `${dockerConfig}.link`);
        const had = existsSync(dockerConfig);
        // What the service writes in between is kept aside as well, not what was there before it.
        while (had && !(existsSync(aside) && statSync(aside).nlink > 1)) {
          rmSync(aside, { force: true });
          linkSync(dockerConfig, aside);
        }
        renameSync(`${dockerConfig}.link`, dockerConfig);
        await moment();
        // Nobody puts an older file over one that was written meanwhile, or back when it was removed.
        if (!lstatSync(dockerConfig, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(aside, { force: true });
        else if (had) renameSync(aside, dockerConfig);
        else rmSync(dockerConfig);
        rmSync(directory, { recursive: true });
        return;
      }
    }
  }

  async function apply({ engine, memory, extension }: Asked) {
    serial += 1;
    const file = join(cwd, `${serial}.json`);
    const application = extension === undefined ? {} : { extensions: { installed: { [EXTENSION]: extension } } };
    const settings = {
      ...{ version: 19, application, containerEngine: { name: engine } },
      ...{ virtualMachine: { memoryInGB: memory }, kubernetes: { enabled: false } },
    };
    writeFileSync(file, JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', settings, state: 'started' }));
    return { ...(await run('apply', '--no-start', '-f', file)), file };
  }

  return {
    serve,
    apply,
    meanwhile,
    async settled(client) {
      const { signal } = new AbortController();
      const feed = pollStatus({ read: () => client.status(), clock: systemClock, signal });
      const { generation } = await client.status();
      await waitConverged({ feed, generation, timeoutMs: 60_000, clock: systemClock, signal });
    },
    entries: () => readHistory(join(home, 'state', 'history.jsonl')),
    userFiles() {
      // A file that is a directory just now is in nobody's place yet.
      if (kind !== 'inside' || (existsSync(dockerConfig) && statSync(dockerConfig).isDirectory())) return undefined;
      const config = existsSync(dockerConfig) ? JSON.parse(readFileSync(dockerConfig, 'utf8')) : {};
      return {
        context: config.currentContext ?? 'default',
        shell: readFileSync(join(user, '.bashrc'), 'utf8').includes('MANAGED BY RDCTL'),
      };
    },
    async close() {
      for (const stop of ends) await stop();
      if (kind === 'program') {
        await run('shutdown');
        await end('SIGKILL');
      }
      unmount();
    },
  };
}

function moment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, MOMENT_MS));
}

function endEngine(file: string): void {
  const model = JSON.parse(readFileSync(file, 'utf8'));
  for (const engine of Object.values<{ process: object }>(model.engines)) engine.process = { state: 'stopped' };
  // A service of its own would read a file that is being written as a damaged one.
  writeFileSync(`${file}.by-the-test`, JSON.stringify(model));
  renameSync(`${file}.by-the-test`, file);
}
