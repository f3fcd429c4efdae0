import { isDeepStrictEqual } from 'node:util';
import { RdError } from '../../errors.ts';
import type { EngineDriver, EngineSpec, EngineStatus } from '../driver.ts';
import { type Arrangement, type EngineArea, type Program, programFailure, type Shell } from '../shell.ts';
import { differsInPatterns, type EngineRecord, type StartedEngine } from './engine-record.ts';
import type { PullGuard } from './pull-guard.ts';

interface EngineStepsParts {
  record: EngineRecord;
  guard: PullGuard;
  observe(signal: AbortSignal): Promise<EngineStatus>;
  /** The status when no trace of the engine is found. */
  start(spec: EngineSpec, signal: AbortSignal): Promise<void>;
  stop(signal: AbortSignal): Promise<void>;
}

/** Returns the steps of an engine that applies allowed-image patterns live and everything else by a restart. */
export function engineSteps({ record, guard, observe, start, stop }: EngineStepsParts): EngineDriver['perform'] {
  async function begin(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    refuseUnsupported(spec);
    if ((await record.read()) !== undefined) {
      const current = await observe(signal);
      if (current.state === 'running' && isDeepStrictEqual(current.spec, spec)) return;
      // Stop even if the state is stopped: a crash may have left the engine partly running.
      await stop(signal);
    }
    await start(spec, signal);
  }

  /** Applies the spec to a running engine. It is recorded first, because every observation serves the recorded patterns. */
  async function adjust(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    const started = await record.read();
    if (started === undefined || started === 'unreadable' || !differsInPatterns(started.spec, spec)) {
      return begin(spec, signal);
    }
    await record.write({ ...started, spec });
    if (spec.allowedImages.enabled) await guard.serve(spec.allowedImages.patterns, started.gateway);
  }

  return async (step, signal) => {
    switch (step.do) {
      case 'start':
        return begin(step.spec, signal);
      case 'adjust':
        return adjust(step.spec, signal);
      case 'stop':
        return stop(signal);
    }
  };
}

/**
 * Refuses settings that no engine here supports. Plans already refuse them; a stored value from another driver must not look enforced either.
 * @throws RdError `ERR_DRIVER_TERMINAL` naming the setting.
 */
function refuseUnsupported(spec: EngineSpec): void {
  if (!spec.webAssembly) return;
  const message = 'experimental.containerEngine.webAssembly.enabled is true, and this driver has no WebAssembly shims';
  throw new RdError('ERR_DRIVER_TERMINAL', message, {
    advice: 'Turn it off: rdctl set --experimental.container-engine.web-assembly.enabled=false',
  });
}

/**
 * Resumes the servers that a previously started engine connects to. Must precede the first query to the engine: a dockerd without its plugin blocks
 * every request. Returns the engine's state when that fails.
 */
export async function adoptGuard(
  guard: PullGuard,
  { spec, gateway }: StartedEngine,
): Promise<EngineStatus | undefined> {
  if (!spec.allowedImages.enabled) return undefined;
  if (gateway === undefined) {
    return { state: 'unresponsive', message: 'its start record names no registry gateway' };
  }
  try {
    await guard.serve(spec.allowedImages.patterns, gateway);
    return undefined;
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
    return { state: 'unresponsive', message: `its list of allowed images cannot be enforced: ${error.message}` };
  }
}

/**
 * Returns the state of an engine with a record if not all of its programs run: stopped if it left no trace, as after a restart of the machine, else
 * unresponsive, for a stop to clear. Undefined if they all run.
 */
export async function statusWithoutPrograms(
  shell: Shell,
  programs: readonly Program[],
  area: EngineArea,
): Promise<EngineStatus | undefined> {
  const states = await Promise.all(programs.map(async ({ name }) => ({ name, ...(await shell.find(name)) })));
  const ended = states.filter(({ state }) => state !== 'running').map(({ name }) => name);
  if (ended.length === 0) return undefined;
  const message = `not running: ${ended.map((name) => `${name} (see ${name}.log)`).join(', ')}`;
  if (ended.length < programs.length) return { state: 'unresponsive', message };
  const left = await shell.leftovers(area);
  if (left.length === 0) return { state: 'stopped' };
  return { state: 'unresponsive', message: `${message}; left behind: ${summary(left)}` };
}

function summary(left: readonly string[]): string {
  const shown = left.slice(0, 3).join(', ');
  return left.length > 3 ? `${shown} and ${left.length - 3} more` : shown;
}

/** A program that sends a readiness notification, where the machine supports it. */
export type EngineProgram = Program & { readyMs: number };

interface EngineStart {
  /** Files that the programs require. */
  before?: Arrangement;
  /** Programs that the other one waits for on its own. */
  needs?: readonly Program[];
  program: EngineProgram;
  isReady(): Promise<boolean>;
}

const POLL_MS = 50;
/** Stop timeout of a program that has nothing to shut down yet. */
const AT_ONCE_MS = 1_000;
/** Checking a process in a guest uses CPU there just when the starting program needs it, so checks are rare. */
const PROCESS_CHECK_MS = 1_000;

/**
 * Starts a program with its dependencies and waits until it responds, watching all of them.
 * @throws RdError `ERR_DRIVER_FAILED` with the last lines of its log when one of them exits or the program stays silent for too
 *   long; `ERR_CANCELLED`.
 */
export async function startReady(
  shell: Shell,
  { before, needs = [], program, isReady }: EngineStart,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = shell;
  const programs = [...needs, program];
  const canceled = () => new RdError('ERR_CANCELLED', `starting ${program.name} was canceled`);
  // A fast program could be running by the time the caller looks.
  if (signal.aborted) throw canceled();
  const deadline = clock.now() + program.readyMs;
  await shell.start(programs, { ...(before ? { before } : {}), signal });
  let nextCheck = clock.now() + PROCESS_CHECK_MS;
  for (;;) {
    if (signal.aborted) throw canceled();
    if (await isReady()) return;
    if (clock.now() >= nextCheck) {
      for (const { name } of programs) {
        const { state } = await shell.find(name);
        if (state === 'running') continue;
        // The program would wait for a dependency that has exited.
        if (name !== program.name) await shell.stop(program.name, AT_ONCE_MS, signal);
        throw await programFailure(shell, name, `${name} exited during its start`);
      }
      nextCheck = clock.now() + PROCESS_CHECK_MS;
    }
    if (clock.now() >= deadline) {
      throw await programFailure(
        shell,
        program.name,
        `${program.name} did not respond within ${program.readyMs / 1000} s`,
      );
    }
    await clock.sleep(POLL_MS, signal);
  }
}
