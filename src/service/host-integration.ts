import { isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { DriverInfo } from '../drivers/driver.ts';
import { manageAutostart } from '../host-integration/autostart.ts';
import { provideContext, releaseContext, withdrawContext } from '../host-integration/docker-context.ts';
import { provideKubeContext, withdrawKubeContext } from '../host-integration/kube-config.ts';
import { writeLauncher } from '../host-integration/launcher.ts';
import type { HostIntegration, IntegrationOutcome } from '../host-integration/outcome.ts';
import { managePath } from '../host-integration/shell-files.ts';
import { type IntegrationTargets, integrationTargets } from '../host-integration/targets.ts';
import { undoIntegration } from '../host-integration/undo.ts';
import type { Controllers, Desired } from '../reconcile/contract.ts';
import type { LoopStatus } from '../reconcile/status.ts';
import type { Platform } from '../settings/field.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { LogFile } from '../storage/log-file.ts';
import type { Environment, Places } from '../storage/places.ts';
import { userHome } from '../storage/user-home.ts';

/** What follows from the settings and the engine. */
interface Wish {
  path: Settings['application']['pathManagementStrategy'];
  autoStart: boolean;
  engine: Settings['containerEngine']['name'];
  /** Absent: nothing of it is to change, as while moby starts, stops or restarts. */
  docker?: DockerWish;
  /** Whether a cluster is to run. */
  cluster: boolean;
  /** Of the cluster that runs; `starts` tells one start from the next, which may have other certificates. */
  kubeconfig?: { file: string; starts: number };
}

/** The context is selected while moby answers at the endpoint, given back while it is meant to be stopped, else gone. */
type DockerWish = { context: 'selected'; endpoint: string } | { context: 'given back' } | { context: 'removed' };

export interface IntegrationInput {
  env: Environment;
  platform: Platform;
  /** Command that starts this tool; absent where the service is part of another program. */
  self?: readonly string[];
  here: Places;
  settings: Settings;
  driver: Pick<DriverInfo, 'simulated'>;
  log: LogFile;
}

/** The integration of a running service: it follows the settings and the engine. */
export interface FollowingIntegration extends HostIntegration {
  /** Begins; what it finds out about the engine it hears from the controllers. */
  follow(controllers: Pick<Controllers, 'onChange' | 'status'>): void;
  settingsChanged(next: Desired): void;
  /** After the backend has stopped. Resolves when what follows from that is done; later changes are not followed. */
  close(): Promise<void>;
  /** Takes everything out of the user's files again. After `close`. */
  undo(): Promise<readonly IntegrationOutcome[]>;
}

/**
 * Keeps docker context, shell files and autostart entry in line, one change after the other, never at the cost of the service: what
 * fails is an outcome and a line in the log, and is tried again with the next change or start.
 */
export function createHostIntegration(input: IntegrationInput): FollowingIntegration {
  const { env, platform, here, log, self = [], driver } = input;
  const { simulated } = driver;
  const targets = integrationTargets({ env, platform, homedir: userHome(env, platform), here, self, simulated });
  if ('offBecause' in targets) return { ...OFF, offBecause: targets.offBecause };
  let wish = wishOf(input.settings);
  let done: Wish | undefined;
  let outcomes: IntegrationOutcome[] = [];
  let work: Promise<void> | undefined;
  let closed = false;
  let unfollow = () => {};
  let last: () => void = () => undefined;
  let clusterRan = false;

  function pursue(): void {
    if (!closed && !work && !isDeepStrictEqual(wish, done)) work = catchUp();
  }

  /** Only to be called when there is something to do. With the last look ends the work: a later wish begins it anew. */
  async function catchUp(): Promise<void> {
    try {
      while (!closed && !isDeepStrictEqual(wish, done)) {
        const next = wish;
        const found = await fulfil(next, done, targets as IntegrationTargets, log);
        const parts = new Set(found.map(({ part }) => part));
        outcomes = [...outcomes.filter(({ part }) => !parts.has(part)), ...found];
        done = next;
      }
    } finally {
      work = undefined;
    }
  }

  function heard(status: LoopStatus): void {
    const { moby } = status.engines;
    if (wish.engine === 'moby') {
      // An engine that is only restarted keeps its context all the while.
      if (moby.state === 'running' && status.power === 'started') {
        wish = { ...wish, docker: { context: 'selected', endpoint: moby.endpoint } };
      } else if (moby.state === 'stopped' && status.power === 'stopped') {
        wish = { ...wish, docker: { context: 'given back' } };
      }
    }
    // A cluster that is stopped keeps its context: it is selected only where none was, and hides nothing.
    const { cluster } = status;
    const runs = cluster.state === 'running' && cluster.ready;
    if (runs && !clusterRan && wish.cluster && cluster.kubeconfig !== undefined && isAbsolute(cluster.kubeconfig)) {
      wish = { ...wish, kubeconfig: { file: cluster.kubeconfig, starts: (wish.kubeconfig?.starts ?? 0) + 1 } };
    }
    clusterRan = runs && wish.cluster;
    pursue();
  }

  return {
    integrationOutcomes: () => outcomes,
    follow(controllers) {
      unfollow = controllers.onChange(heard);
      last = () => heard(controllers.status());
      last();
    },
    settingsChanged({ settings }) {
      const { docker, kubeconfig } = wish;
      const next = wishOf(settings);
      wish = {
        ...next,
        ...(next.engine === 'moby' && docker && docker.context !== 'removed' ? { docker } : {}),
        ...(next.cluster && kubeconfig !== undefined ? { kubeconfig } : {}),
      };
      pursue();
    },
    async close() {
      unfollow();
      last();
      await work;
      closed = true;
    },
    undo: () => undoIntegration(targets),
  };
}

/** For the status document. */
export function statusOf({ offBecause, integrationOutcomes }: HostIntegration) {
  return { ...(offBecause === undefined ? {} : { offBecause }), files: [...integrationOutcomes()] };
}

const OFF: FollowingIntegration = {
  integrationOutcomes: () => [],
  follow: () => undefined,
  settingsChanged: () => undefined,
  close: async () => undefined,
  undo: async () => [],
};

function wishOf({ application, containerEngine, kubernetes }: Settings): Wish {
  return {
    path: application.pathManagementStrategy,
    autoStart: application.autoStart,
    engine: containerEngine.name,
    ...(containerEngine.name === 'moby' ? {} : { docker: { context: 'removed' } }),
    cluster: kubernetes.enabled,
  };
}

async function fulfil(
  wish: Wish,
  before: Wish | undefined,
  targets: IntegrationTargets,
  log: LogFile,
): Promise<IntegrationOutcome[]> {
  const found: IntegrationOutcome[] = [];
  if (!before) {
    try {
      const { kept } = await writeLauncher(targets);
      if (kept !== undefined) log.write('info', 'what was in the place of the launcher is kept', { file: kept });
    } catch (error) {
      log.write('warn', 'the launcher cannot be written', { error });
    }
  }
  // Windows has no such files; its setting can only be `manual`.
  if (targets.platform !== 'win32' && before?.path !== wish.path) found.push(...(await managePath(wish.path, targets)));
  // An entry made by `rdctl setup` stays as long as nobody changes the setting.
  if (wish.autoStart ? before?.autoStart !== true : before?.autoStart === true) {
    found.push(await manageAutostart(wish.autoStart, targets));
  }
  if (wish.docker && !isDeepStrictEqual(before?.docker, wish.docker)) {
    found.push(...(await manageContext(wish.docker, targets)));
  }
  if (!wish.cluster) {
    if (before?.cluster !== false) found.push(...(await withdrawKubeContext(targets)));
  } else if (wish.kubeconfig !== undefined && !isDeepStrictEqual(before?.kubeconfig, wish.kubeconfig)) {
    found.push(await provideKubeContext(wish.kubeconfig.file, targets));
  }
  logOutcomes(found, log);
  return found;
}

export function logOutcomes(found: readonly IntegrationOutcome[], log: LogFile): void {
  for (const { state, part, file, message } of found) {
    const level = state === 'failed' ? 'warn' : state === 'left' ? 'info' : 'debug';
    log.write(level, 'host integration', { part, file, state, ...(message === undefined ? {} : { reason: message }) });
  }
}

function manageContext(wish: DockerWish, targets: IntegrationTargets): Promise<IntegrationOutcome[]> {
  switch (wish.context) {
    case 'selected':
      return provideContext(wish.endpoint, targets);
    case 'given back':
      return releaseContext(targets);
    case 'removed':
      return withdrawContext(targets);
  }
}
