import { isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { DriverInfo } from '../../drivers/driver.ts';
import type { LogFile } from '../../os/log-file.ts';
import type { Environment } from '../../os/user-directories.ts';
import { userHome } from '../../os/user-directories.ts';
import { type DesiredFiles, desiredFilesOf, dueParts, type UserFileFacts } from '../../plan/user-files.ts';
import type { Controllers, Desired, LoopStatus } from '../../reconcile/contract.ts';
import type { Platform } from '../../settings/field.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import type { Places } from '../../state/places.ts';
import { writeLauncher } from './launcher.ts';
import type { HostIntegration, IntegrationOutcome } from './outcome.ts';
import { previewChanges, reconcilePart, undoIntegration } from './parts.ts';
import { type IntegrationTargets, integrationTargets } from './targets.ts';

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
  /** What a plan has to know of the user's files; absent while nothing is touched. */
  userFiles(): Promise<UserFileFacts | undefined>;
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
  let { settings } = input;
  let wish = desiredFilesOf(settings);
  let done: DesiredFiles | undefined;
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

  function heard({ engines: { moby }, cluster, power }: LoopStatus): void {
    if (settings.containerEngine.name === 'moby') {
      // An engine that is only restarted keeps its context all the while.
      if (moby.state === 'running' && power === 'started') {
        wish = { ...wish, docker: { context: 'selected', endpoint: moby.endpoint } };
      } else if (moby.state === 'stopped' && power === 'stopped') {
        wish = { ...wish, docker: { context: 'given back' } };
      }
    }
    // A cluster that is stopped keeps its context: it is selected only where none was, and hides nothing.
    const runs = settings.kubernetes.enabled && cluster.state === 'running' && cluster.ready;
    if (runs && !clusterRan && cluster.kubeconfig !== undefined && isAbsolute(cluster.kubeconfig)) {
      const starts = wish.kube?.context === 'present' ? wish.kube.starts + 1 : 1;
      wish = { ...wish, kube: { context: 'present', file: cluster.kubeconfig, starts } };
    }
    clusterRan = runs;
    pursue();
  }

  return {
    integrationOutcomes: () => outcomes,
    follow(controllers) {
      unfollow = controllers.onChange(heard);
      last = () => heard(controllers.status());
      last();
    },
    settingsChanged(next) {
      const { docker, kube } = wish;
      settings = next.settings;
      wish = {
        ...(docker && docker.context !== 'removed' ? { docker } : {}),
        ...(kube?.context === 'present' ? { kube } : {}),
        ...desiredFilesOf(settings),
      };
      pursue();
    },
    async userFiles() {
      await work;
      return { ...(done ? { done } : {}), ...(await previewChanges(targets)) };
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
  userFiles: async () => undefined,
  close: async () => undefined,
  undo: async () => [],
};

async function fulfil(
  wish: DesiredFiles,
  before: DesiredFiles | undefined,
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
  for (const part of dueParts(wish, before)) found.push(...(await reconcilePart(part, wish, targets)));
  logOutcomes(found, log);
  return found;
}

export function logOutcomes(found: readonly IntegrationOutcome[], log: LogFile): void {
  for (const { state, part, file, message } of found) {
    const level = state === 'failed' ? 'warn' : state === 'left' ? 'info' : 'debug';
    log.write(level, 'host integration', { part, file, state, ...(message === undefined ? {} : { reason: message }) });
  }
}
