import { RdError } from '../errors.ts';
import type { Extensions } from '../features/extensions/contract.ts';
import type { PortForwards } from '../features/port-forwards/manager.ts';
import type { Clock } from '../os/clock.ts';
import type { Log } from '../os/limited-log.ts';
import type { DeedSteps } from '../plan/deed.ts';
import { type ExtensionStep, extensionFailure } from '../plan/extension-changes.ts';
import type { Origin } from '../plan/history.ts';
import { type ForwardSteps, forwardName, throwForwardFailure } from '../plan/port-forwards.ts';
import type { Controllers } from '../reconcile/contract.ts';
import type { ApplyStep, ApplyWork } from '../reconcile/status-document.ts';

/** Retry interval and total limit while the extensions are not ready yet. */
const RETRY_MS = 250;
const READY_LIMIT_MS = 60_000;

/** The steps of an apply after its settings are written. */
export interface Applies {
  /**
   * Reserves the steps of a plan; undefined if it has none. No other plan is carried out until
   * they are done or released. Throws `ERR_BACKEND_LOCKED` while another plan is in progress.
   */
  reserve(steps: DeedSteps): ReservedSteps | undefined;
  /** Returns the report of the last apply that had such steps; undefined if there was none. */
  report(): ApplyWork | undefined;
}

/** Reserved steps of a plan. Exactly one method is called. */
export interface ReservedSteps {
  /** Starts the steps. `origin` is that of the plan. */
  begin(generation: number, origin: Origin): void;
  release(): void;
}

interface AppliesInput {
  controllers: Pick<Controllers, 'quiesce'>;
  extensions: Pick<Extensions, 'install' | 'uninstall'>;
  portForwards: Pick<PortForwards, 'ensure' | 'remove'>;
  /** Whether the settings of an apply were undone; resolves once that is certain, or the signal aborts. */
  wasRolledBack(generation: number, signal: AbortSignal): Promise<boolean>;
  clock: Clock;
  log: Log;
  /** Called after every change of the report. */
  onChange(): void;
  /** Called at the end of the steps, for the history. */
  onFinished?(generation: number, failure?: unknown): void;
}

/** Carries out the steps after the settings of an apply: port forwards, and extensions once the backend has converged. */
export function createApplies(input: AppliesInput): Applies & { close(): void } {
  const { log, onChange } = input;
  const closed = new AbortController();
  let report: ApplyWork | undefined;
  let reserved = false;

  function addStep(step: ApplyStep): void {
    if (report) report = { ...report, steps: [...report.steps, step] };
    onChange();
  }

  function finish(end: Pick<ApplyWork, 'state' | 'error'>): void {
    if (report) report = { ...report, ...end };
    reserved = false;
    onChange();
  }

  return {
    reserve({ extensions, forwards }) {
      if (reserved) {
        throw new RdError('ERR_BACKEND_LOCKED', 'an earlier apply is still running', {
          advice: 'Wait until `apply` in GET /v2/status has finished, and plan again.',
        });
      }
      if (extensions.length + forwards.ensure.length + forwards.remove.length === 0) return undefined;
      reserved = true;
      return {
        begin(generation, { by, ...rest }) {
          report = { generation, state: 'running', steps: [] };
          const work = {
            ...input,
            generation,
            addStep,
            signal: closed.signal,
            origin: { ...rest, by: { ...by, continues: generation } },
          };
          carryOut(work, extensions, forwards).then(
            () => {
              input.onFinished?.(generation);
              finish({ state: 'done' });
            },
            (thrown: unknown) => {
              log('warn', 'an apply did not finish', { error: thrown });
              input.onFinished?.(generation, thrown);
              finish({ state: 'failed', error: errorOf(thrown) });
            },
          );
        },
        release() {
          reserved = false;
        },
      };
    },
    report: () => report,
    close: () => closed.abort(),
  };
}

type Work = AppliesInput & {
  generation: number;
  addStep(step: ApplyStep): void;
  signal: AbortSignal;
  origin: Origin;
};

/** Carries out both parts; a failure in one does not stop the other. */
async function carryOut(work: Work, extensions: readonly ExtensionStep[], forwards: ForwardSteps): Promise<void> {
  if (await work.wasRolledBack(work.generation, work.signal)) {
    throw new RdError(
      'ERR_CONVERGE_FAILED',
      'No port forward or extension was changed, because the change was undone.',
    );
  }
  if (work.signal.aborted) throw stoppedError();
  const failed = [
    await failureOf(changeForwards(work, forwards)),
    ...(extensions.length > 0 ? [await failureOf(changeExtensions(work, extensions))] : []),
  ].filter((failure) => failure !== undefined);
  const [first, second] = failed;
  if (first && second) {
    const details = [...first.details, second.message, ...second.details];
    throw new RdError(first.code, first.message, { cause: first, details, ...adviceOf(first) });
  }
  if (first) throw first;
}

/** Returns the `RdError` that the work fails with, if any. Rethrows any other error. */
async function failureOf(work: Promise<void>): Promise<RdError | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof RdError) return error;
      throw error;
    },
  );
}

function adviceOf({ advice }: RdError): { advice?: string } {
  return advice === undefined ? {} : { advice };
}

async function changeForwards({ portForwards, addStep }: Work, forwards: ForwardSteps): Promise<void> {
  const moved = new Set(forwards.ensure.map(forwardName));
  for (const key of forwards.remove) {
    const name = forwardName(key);
    if (!moved.has(name)) addStep({ what: 'forward', name: `${name} → (removed)` });
    await portForwards.remove(key).catch(throwForwardFailure(name));
  }
  for (const forward of forwards.ensure) {
    const name = forwardName(forward);
    addStep({ what: 'forward', name: `${name} → ${forward.hostPort}` });
    await portForwards.ensure({ ...forward }, 'later').catch(throwForwardFailure(name));
  }
}

/** Changes the extensions one by one; a failure does not stop the others. */
async function changeExtensions(work: Work, steps: readonly ExtensionStep[]): Promise<void> {
  const { controllers, signal, addStep } = work;
  const { converged, backendState } = await controllers.quiesce(signal);
  if (signal.aborted) throw stoppedError();
  if (!converged) {
    throw new RdError(
      'ERR_CONVERGE_FAILED',
      `No extension was changed, because the backend state is ${backendState}.`,
      { advice: 'See `rdctl status`, and apply again once the backend is running.' },
    );
  }
  const failures: string[] = [];
  for (const step of steps) {
    addStep({ what: step.what, name: step.id });
    try {
      await changeWhenReady(work, step);
    } catch (error) {
      if (signal.aborted) throw stoppedError();
      if (!(error instanceof RdError)) throw error;
      failures.push(`${step.what} ${step.id}: ${errorLine(error)}`);
    }
  }
  if (failures.length > 0) throw extensionFailure(failures);
}

/** Retries, because the extensions notice a started engine with a delay. */
async function changeWhenReady(
  { extensions, clock, signal, origin }: Work,
  { what, id }: ExtensionStep,
): Promise<void> {
  const begun = clock.now();
  for (;;) {
    try {
      await (what === 'install' ? extensions.install(id, origin) : extensions.uninstall(id, origin));
      return;
    } catch (error) {
      const isEarly = error instanceof RdError && error.code === 'ERR_NOT_READY';
      if (!isEarly || signal.aborted || clock.now() - begun > READY_LIMIT_MS) throw error;
      await clock.sleep(RETRY_MS, signal);
    }
  }
}

function errorLine({ message, cause }: RdError): string {
  if (!(cause instanceof Error)) return message;
  const advice = cause instanceof RdError && cause.advice !== undefined ? `. ${cause.advice}` : '';
  return `${message} (${advice === '' ? cause.message : `${cause.message.replace(/\.$/, '')}${advice}`})`;
}

function stoppedError(): RdError {
  return new RdError('ERR_STOPPED', 'The service stopped before the apply finished.', {
    advice: 'Apply again to finish it.',
  });
}

function errorOf(thrown: unknown): NonNullable<ApplyWork['error']> {
  const error =
    thrown instanceof RdError ? thrown : new RdError('ERR_INTERNAL', 'The apply did not finish.', { cause: thrown });
  const { code, message, details } = error;
  return { code, message, details: [...details], ...adviceOf(error) };
}
