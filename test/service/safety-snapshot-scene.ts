import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Model } from '../../src/drivers/machines/simulated/model.ts';
import { readHistory } from '../../src/state/history-file.ts';
import { rdctl } from '../helpers/cli.ts';
import { mountSmallDisk } from '../helpers/full-disk.ts';
import { startService, type TestServiceOptions } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const cluster = (version: string) => JSON.stringify({ version: 19, kubernetes: { enabled: true, version } });
export const ALLOW = ['--allow', 'kubernetes-reset'];

/** A service with a cluster, and the tool beside it. */
export async function safetySnapshotScene(options: TestServiceOptions = {}) {
  const kubernetes = { enabled: true, version: '1.33.4' };
  const running = await startService({ settings: { containerEngine: { name: 'moby' }, kubernetes }, ...options });
  await running.converged();
  const { here, env } = running;
  const cwd = temporaryDirectory();
  for (const version of ['1.33.4', '1.32.8', '1.31.2']) writeFileSync(join(cwd, `${version}.json`), cluster(version));
  const run = (...argv: string[]) => rdctl(argv, { env, cwd });
  const file = join(here.state, 'drivers', 'simulated', 'machine.json');
  const entries = () => readHistory(here.historyFile);
  const model = (): Model => JSON.parse(readFileSync(file, 'utf8'));
  return {
    ...running,
    run,
    model,
    /** Data that only the machine holds. */
    addImage(name: string) {
      const now = model();
      now.engines.moby.images.push(name);
      writeFileSync(file, JSON.stringify(now));
    },
    apply: (version: string, ...flags: string[]) => run('apply', '-f', `${version}.json`, ...flags),
    reset: (body: object) =>
      running.client.request({ method: 'PUT', path: '/v1/k8s_reset', body: JSON.stringify(body) }),
    entries,
    /** The last entry, with its outcome, which is recorded after the reply. */
    async concluded() {
      await expect.poll(async () => (await entries()).at(-1)).toHaveProperty('outcome');
      return (await entries()).at(-1);
    },
    async names(): Promise<string[]> {
      const { body } = await running.client.request({ method: 'GET', path: '/v1/snapshots' });
      return JSON.parse(body.toString()).map(({ name }: { name: string }) => name);
    },
    /** Nothing of a snapshot is left behind. */
    isClean: () =>
      !existsSync(join(here.state, 'covering.json')) &&
      !(existsSync(here.snapshots) ? readdirSync(here.snapshots) : []).some((name) => name.startsWith('.')),
  };
}

/** A home on its own file system, with less room than a copy leaves free. */
export async function smallSafetySnapshotScene() {
  const home = temporaryDirectory();
  onTestFinished(mountSmallDisk(home, '60m'));
  return safetySnapshotScene({ home });
}
