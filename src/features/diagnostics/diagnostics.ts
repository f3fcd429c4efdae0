import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defined } from '../../json.ts';
import type { Clock } from '../../os/clock.ts';
import { run } from '../../os/run.ts';
import { userHome } from '../../os/user-directories.ts';
import { PRODUCT } from '../../product.ts';
import type { Controllers } from '../../reconcile/contract.ts';
import type { CheckContext, Diagnostics } from './check.ts';
import { allChecks } from './checks/index.ts';
import { createRunner } from './runner.ts';

/** Milliseconds that one check may take. */
const CHECK_LIMIT = 15_000;
/** Milliseconds after a settings change until its effects on files of the user are complete. */
const SETTLED = 2_000;
const CONNECTIVITY = 'CONNECTED_TO_INTERNET';

export interface DiagnosticsOptions
  extends Omit<CheckContext, 'home' | 'documentation' | 'connectivityUrl' | 'now' | 'run' | 'status'> {
  /** Command that starts this tool. */
  self?: readonly string[];
  controllers: Controllers;
  clock: Clock;
  log: (level: 'warn' | 'info', message: string, values?: Record<string, unknown>) => void;
}

/** The diagnostics of a service, with the background runs that keep them fresh. */
export interface ServiceDiagnostics extends Diagnostics {
  /** Starts the background runs: all checks once, connectivity repeatedly. Returns at once. */
  start(): void;
  settingsChanged(): void;
  close(): Promise<void>;
}

export function createServiceDiagnostics(options: DiagnosticsOptions): ServiceDiagnostics {
  const { controllers, clock, log, env, settings, platform, self } = options;
  const documentation = documentationPage('diagnostics.md', self);
  const context: CheckContext = {
    ...options,
    home: userHome(env, platform),
    ...defined({ documentation }),
    connectivityUrl: connectivityUrl(env.RDCTL_CONNECTIVITY_URL, log),
    status: () => controllers.status(),
    now: () => clock.now(),
    run,
  };
  const runner = createRunner({ checks: allChecks(platform), context, clock, log, limitMs: CHECK_LIMIT });
  /** Runs once after several changes. */
  const afterSettings = restartable(async (signal) => {
    await clock.sleep(SETTLED, signal);
    if (!signal.aborted) await runner.rerun(({ followsSettings }) => followsSettings === true);
  });
  let connectivity: Restartable | undefined;
  let unfollow = () => {};
  return {
    ...runner,
    start() {
      void runner.runAll();
      afterSettings.restart();
      connectivity = createBackground({
        clock,
        interval: () => settings().diagnostics.connectivity.interval,
        look: () => runner.rerun(({ id }) => id === CONNECTIVITY),
      });
      let before = controllers.status().backendState;
      unfollow = controllers.onChange(({ backendState }) => {
        if (backendState === before) return;
        before = backendState;
        void runner.rerun(({ followsBackend }) => followsBackend === true);
      });
    },
    settingsChanged() {
      if (connectivity === undefined) return;
      connectivity.restart();
      afterSettings.restart();
    },
    async close() {
      unfollow();
      afterSettings.close();
      connectivity?.close();
      await runner.close();
    },
  };
}

/** Returns the chosen connectivity server, such as a mirror in a closed network, or the usual one. */
function connectivityUrl(chosen: string | undefined, log: DiagnosticsOptions['log']): string {
  if (!chosen) return PRODUCT.connectivityUrl;
  if (/^https?:$/.test(URL.canParse(chosen) ? new URL(chosen).protocol : '')) return chosen;
  log('warn', 'RDCTL_CONNECTIVITY_URL is not an http address; the usual one is asked', { value: chosen });
  return PRODUCT.connectivityUrl;
}

/**
 * Returns the URL of a page of the documentation that was installed with the program, whose command is `self`; undefined if the program was installed
 * alone.
 */
export function documentationPage(name: string, self: readonly string[] = []): string | undefined {
  const script = self.at(-1);
  if (script === undefined || !existsSync(script)) return undefined;
  const page = join(dirname(realpathSync(script)), '..', 'docs', name);
  return existsSync(page) ? pathToFileURL(page).href : undefined;
}

/** Shortest interval in milliseconds: a shorter one would only burden the server. */
const SHORTEST = 1_000;

/**
 * Runs `look` repeatedly, a whole interval after the end of the last run. Begins with an interval, because the first run belongs to the start of the
 * service. An interval of 0 disables it. `look` must not reject.
 */
export function createBackground({
  clock,
  interval,
  look,
}: {
  clock: Clock;
  /** Returns the interval in milliseconds. */
  interval(): number;
  look(): Promise<void>;
}): Restartable {
  const loop = restartable(async (signal) => {
    while (!signal.aborted) {
      const pause = interval();
      if (pause === 0) return;
      await clock.sleep(Math.max(pause, SHORTEST), signal);
      if (!signal.aborted) await look();
    }
  });
  loop.restart();
  return loop;
}

interface Restartable {
  restart(): void;
  close(): void;
}

/** Wraps work that a restart cancels and begins anew. It must not reject, and must end soon after its signal is aborted. */
function restartable(work: (signal: AbortSignal) => Promise<void>): Restartable {
  let current = new AbortController();
  return {
    restart() {
      current.abort();
      current = new AbortController();
      void work(current.signal);
    },
    close: () => current.abort(),
  };
}
