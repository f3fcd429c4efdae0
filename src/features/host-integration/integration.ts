import { isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { DriverInfo } from '../../drivers/driver.ts';
import { defined } from '../../json.ts';
import type { Clock } from '../../os/clock.ts';
import type { LogFile } from '../../os/log-file.ts';
import type { Environment } from '../../os/user-directories.ts';
import { userHome } from '../../os/user-directories.ts';
import {
  type DesiredFiles,
  desiredFilesOf,
  dueParts,
  type FilesPart,
  type UserFileFacts,
} from '../../plan/user-files.ts';
import type { Condition, Controllers, Desired, LoopStatus } from '../../reconcile/contract.ts';
import type { StatusDocument } from '../../reconcile/status-document.ts';
import type { Platform } from '../../settings/field.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import type { Places } from '../../state/places.ts';
import { type FileDrift, fileDrift, watchFiles } from './file-drift.ts';
import { writeLauncher } from './launcher.ts';
import { failureConditions, type HostIntegration, type IntegrationOutcome } from './outcome.ts';
import { PART_OF, previewChanges, reconcilePart, undoIntegration, withDue } from './parts.ts';
import { type IntegrationTargets, integrationTargets } from './targets.ts';

export interface IntegrationInput {
  env: Environment;
  platform: Platform;
  /** Command that starts this tool; absent if the service is part of another program. */
  self?: readonly string[];
  places: Places;
  settings: Settings;
  driver: Pick<DriverInfo, 'simulated'>;
  /** Whether the backend stays off, whatever is desired. */
  idle?: boolean;
  clock: Pick<Clock, 'now'>;
  log: LogFile;
}

/** The integration of a running service: it follows the settings and the engine. */
export interface FollowingIntegration extends HostIntegration {
  /** Starts following the backend. */
  follow(controllers: Pick<Controllers, 'onChange' | 'status'>): void;
  settingsChanged(next: Desired): void;
  /** Returns the observed user files, for a plan; undefined while the integration is off. */
  userFiles(): Promise<UserFileFacts | undefined>;
  /** Returns the changes in those files since they were applied; empty while the integration is off. */
  fileDrift(): Promise<FileDrift[]>;
  /** Applies these parts again. Resolves when that is done. */
  repair(parts: readonly FilesPart[]): Promise<void>;
  /** Retries changes of files that failed. Resolves when that is done, with false if there were none. */
  retry(): Promise<boolean>;
  /** Resolves when the effects of the settings so far are complete. */
  idle(): Promise<void>;
  /** Returns the state of the files for the status. */
  report(): NonNullable<StatusDocument['hostIntegration']>;
  /** Returns `UserFilesReady` while a file is not as desired; otherwise nothing. */
  conditions(): Condition[];
  /** Calls back when the report has changed. */
  onReport(listener: () => void): void;
  /** Calls back soon after one of the files was changed by anything. Returns the unsubscribe function. */
  onFilesChanged(listener: () => void): () => void;
  /** Applies the effects of a stopped backend; must be called after the stop. Later changes are ignored. */
  close(): Promise<void>;
  /** Removes all our content from the user's files. Must be called after `close`. */
  undo(): Promise<readonly IntegrationOutcome[]>;
}

/**
 * Keeps docker context, kubeconfig, shell files and autostart entry in the desired state, one change at a time. A failure never affects the
 * service: it is an outcome and a log line, and is retried when the file changes, with the next apply or start, and with the next change of
 * its setting.
 */
export function createHostIntegration(input: IntegrationInput): FollowingIntegration {
  const { env, platform, places, clock, log, self = [], driver } = input;
  const { simulated } = driver;
  const targets = integrationTargets({ env, platform, homedir: userHome(env, platform), places, self, simulated });
  if ('offBecause' in targets) {
    const { offBecause } = targets;
    return { ...OFF, offBecause, report: () => ({ offBecause, files: [] }) };
  }
  let { settings } = input;
  let desired = desiredFilesOf(settings);
  let applied: DesiredFiles | undefined;
  let outcomes: IntegrationOutcome[] = [];
  let work: Promise<void> | undefined;
  let closed = false;
  let unfollow = () => {};
  let readStatus = () => {};
  let clusterRan = false;
  const listeners = new Set<() => void>();
  const reportListeners: (() => void)[] = [];
  let unwatch = () => {};
  /** The last report of the loop. */
  let seen: LoopStatus | undefined;
  /** The last version of the desired state that the files have followed. */
  let observedGeneration = 0;
  let failedSince: number | undefined;

  /** Watches the files that exist now. After the removal of a docker context, they come back in a new directory. */
  function watchAgain(): void {
    unwatch();
    unwatch = () => {};
    if (closed || listeners.size === 0) return;
    const files = outcomes.map(({ file }) => file);
    unwatch = watchFiles(files, () => {
      watchAgain();
      void retry();
      for (const listen of listeners) listen();
    });
  }

  function reconcile(): void {
    if (closed) return;
    if (!isDeepStrictEqual(desired, applied)) work ??= applyAll();
    else if (!work && noteGeneration()) announce();
  }

  /** Returns true when the files have followed a later version than before. Their desired content depends on the running parts. */
  function noteGeneration(): boolean {
    const followed = input.idle ? seen?.generation : seen?.converged ? seen.observedGeneration : undefined;
    if (followed === undefined || followed === observedGeneration) return false;
    observedGeneration = followed;
    return true;
  }

  function announce(): void {
    for (const listen of reportListeners) listen();
  }

  function failed(): IntegrationOutcome[] {
    return outcomes.filter(({ state }) => state === 'failed');
  }

  async function applyAgain(parts: readonly FilesPart[]): Promise<void> {
    await work;
    if (!applied) return;
    applied = withDue(applied, parts);
    reconcile();
    await work;
  }

  async function retry(): Promise<boolean> {
    await work;
    const parts = failed().map(({ part }) => PART_OF[part]);
    if (parts.length === 0 || closed) return false;
    await applyAgain(parts);
    return true;
  }

  async function applyAll(): Promise<void> {
    try {
      while (!closed && !isDeepStrictEqual(desired, applied)) {
        const next = desired;
        const latest = await applyFiles(next, applied, targets as IntegrationTargets, log);
        const parts = new Set(latest.map(({ part }) => part));
        outcomes = [...outcomes.filter(({ part }) => !parts.has(part)), ...latest];
        applied = next;
      }
    } finally {
      work = undefined;
      failedSince = failed().length === 0 ? undefined : (failedSince ?? clock.now());
      noteGeneration();
      watchAgain();
      announce();
    }
  }

  function statusChanged(status: LoopStatus): void {
    seen = status;
    const { moby } = status.engines;
    const { cluster, power } = status;
    if (settings.containerEngine.name === 'moby') {
      // A restart of the engine keeps its context selected.
      if (moby.state === 'running' && power === 'started') {
        desired = { ...desired, docker: { context: 'selected', endpoint: moby.endpoint } };
      } else if (moby.state === 'stopped' && power === 'stopped') {
        desired = { ...desired, docker: { context: 'given back' } };
      }
    }
    // A stopped cluster keeps its context, which was selected only if none was, and hides nothing.
    const runs = settings.kubernetes.enabled && cluster.state === 'running' && cluster.ready;
    if (runs && !clusterRan && cluster.kubeconfig !== undefined && isAbsolute(cluster.kubeconfig)) {
      const starts = desired.kube?.context === 'present' ? desired.kube.starts + 1 : 1;
      desired = { ...desired, kube: { context: 'present', file: cluster.kubeconfig, starts } };
    }
    clusterRan = runs;
    reconcile();
  }

  return {
    integrationOutcomes: () => outcomes,
    follow(controllers) {
      unfollow = controllers.onChange(statusChanged);
      readStatus = () => statusChanged(controllers.status());
      readStatus();
    },
    settingsChanged(next) {
      const { docker, kube } = desired;
      settings = next.settings;
      desired = {
        ...(docker && docker.context !== 'removed' ? { docker } : {}),
        ...(kube?.context === 'present' ? { kube } : {}),
        ...desiredFilesOf(settings),
      };
      reconcile();
    },
    async userFiles() {
      await work;
      const due = failed().map(({ part }) => PART_OF[part]);
      return { ...(applied ? { done: withDue(applied, due) } : {}), ...(await previewChanges(targets)) };
    },
    async fileDrift() {
      await work;
      return applied ? fileDrift(applied, targets) : [];
    },
    repair: applyAgain,
    retry,
    async idle() {
      await work;
    },
    report: () => ({ observedGeneration, files: [...outcomes] }),
    conditions: () => failureConditions(outcomes, { observedGeneration, since: failedSince ?? clock.now() }),
    onReport(listener) {
      reportListeners.push(listener);
    },
    onFilesChanged(listener) {
      listeners.add(listener);
      watchAgain();
      return () => {
        listeners.delete(listener);
        watchAgain();
      };
    },
    async close() {
      unfollow();
      readStatus();
      await work;
      closed = true;
      watchAgain();
    },
    undo: () => undoIntegration(targets),
  };
}

const OFF: FollowingIntegration = {
  integrationOutcomes: () => [],
  follow: () => undefined,
  settingsChanged: () => undefined,
  userFiles: async () => undefined,
  fileDrift: async () => [],
  repair: async () => undefined,
  retry: async () => false,
  idle: async () => undefined,
  report: () => ({ files: [] }),
  conditions: () => [],
  onReport: () => undefined,
  onFilesChanged: () => () => undefined,
  close: async () => undefined,
  undo: async () => [],
};

async function applyFiles(
  desired: DesiredFiles,
  applied: DesiredFiles | undefined,
  targets: IntegrationTargets,
  log: LogFile,
): Promise<IntegrationOutcome[]> {
  if (!applied) {
    try {
      const renamedTo = await writeLauncher(targets);
      if (renamedTo !== undefined) log.write('info', 'a program in place of the launcher is kept', { file: renamedTo });
    } catch (error) {
      log.write('warn', 'the launcher cannot be written', { error });
    }
  }
  const outcomes: IntegrationOutcome[] = [];
  for (const part of dueParts(desired, applied)) outcomes.push(...(await reconcilePart(part, desired, targets)));
  logOutcomes(outcomes, log);
  return outcomes;
}

export function logOutcomes(outcomes: readonly IntegrationOutcome[], log: LogFile): void {
  for (const { state, part, file, message } of outcomes) {
    const level = state === 'failed' ? 'warn' : state === 'left' ? 'info' : 'debug';
    log.write(level, 'host integration', { part, file, state, ...defined({ reason: message }) });
  }
}
