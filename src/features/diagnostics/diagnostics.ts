import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
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
/** Milliseconds after which what a change of settings sets off in files of the user has been done. */
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

/** The diagnostics of a service, with the background that keeps them fresh. */
export interface ServiceDiagnostics extends Diagnostics {
  /** Begins: all checks once, connectivity again and again. Returns at once. */
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
    ...(documentation === undefined ? {} : { documentation }),
    connectivityUrl: connectivityUrl(env.RDCTL_CONNECTIVITY_URL, log),
    status: () => controllers.status(),
    now: () => clock.now(),
    run,
  };
  const runner = createRunner({ checks: allChecks(platform), context, clock, log, limitMs: CHECK_LIMIT });
  const ends: (() => void)[] = [];
  let afterwards = new AbortController();
  /** Once after several changes. */
  function lookAfterwards(): void {
    afterwards.abort();
    afterwards = new AbortController();
    const { signal } = afterwards;
    void clock.sleep(SETTLED, signal).then(() => {
      if (!signal.aborted) return runner.rerun(({ followsSettings }) => followsSettings === true);
    });
  }
  ends.push(() => afterwards.abort());
  let background: ReturnType<typeof createBackground> | undefined;
  return {
    ...runner,
    start() {
      void runner.runAll();
      lookAfterwards();
      background = createBackground({
        clock,
        interval: () => settings().diagnostics.connectivity.interval,
        look: () => runner.rerun(({ id }) => id === CONNECTIVITY),
      });
      ends.push(() => background?.close());
      let before = controllers.status().backendState;
      ends.push(
        controllers.onChange(({ backendState }) => {
          if (backendState === before) return;
          before = backendState;
          void runner.rerun(({ followsBackend }) => followsBackend === true);
        }),
      );
    },
    settingsChanged() {
      if (background === undefined) return;
      background.restart();
      lookAfterwards();
    },
    async close() {
      for (const end of ends) end();
      await runner.close();
    },
  };
}

/** A mirror of a closed network can be asked in the place of the usual server. */
function connectivityUrl(chosen: string | undefined, log: DiagnosticsOptions['log']): string {
  if (!chosen) return PRODUCT.connectivityUrl;
  if (/^https?:$/.test(URL.canParse(chosen) ? new URL(chosen).protocol : '')) return chosen;
  log('warn', 'RDCTL_CONNECTIVITY_URL is not an http address; the usual one is asked', { value: chosen });
  return PRODUCT.connectivityUrl;
}

/**
 * Address of a page of the documentation that was installed with the program, whose command is `self`; absent where the program
 * is alone.
 */
export function documentationPage(name: string, self: readonly string[] = []): string | undefined {
  const script = self.at(-1);
  if (script === undefined || !existsSync(script)) return undefined;
  const page = join(dirname(realpathSync(script)), '..', 'docs', name);
  return existsSync(page) ? pathToFileURL(page).href : undefined;
}

/** Milliseconds: a shorter interval would only burden the server. */
const SHORTEST = 1_000;

export interface BackgroundOptions {
  clock: Clock;
  /** Interval in milliseconds; 0 disables it. */
  interval(): number;
  /** One run. Never rejects. */
  look(): Promise<void>;
}

/** Repeats, a whole interval after the end of the last run. */
export interface Background {
  /** Restarts the interval after a settings change. */
  restart(): void;
  close(): void;
}

/** Begins with a whole interval, because the first run belongs to the start of the service. */
export function createBackground({ clock, interval, look }: BackgroundOptions): Background {
  let round = new AbortController();

  async function loop({ signal }: AbortController): Promise<void> {
    while (!signal.aborted) {
      const pause = interval();
      if (pause === 0) return;
      await clock.sleep(Math.max(pause, SHORTEST), signal);
      if (!signal.aborted) await look();
    }
  }

  void loop(round);
  return {
    restart() {
      round.abort();
      round = new AbortController();
      void loop(round);
    },
    close: () => round.abort(),
  };
}
