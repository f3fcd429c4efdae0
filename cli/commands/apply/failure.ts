import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanClient, ServiceClient } from '../../../src/client/contract.ts';
import { stoppedError } from '../../../src/client/converge.ts';
import type { Service } from '../../../src/client/session/find.ts';
import { RdError } from '../../../src/errors.ts';
import { isObject, type JsonObject } from '../../../src/json.ts';
import { ENGINE_PROGRAMS, SERVICE_LOG } from '../../../src/state/log-files.ts';
import type { Places } from '../../../src/state/places.ts';
import { plainText } from '../../views/text.ts';

const TAIL_BYTES = 16 * 1024;
/** Pino's level of a warning. */
const WARNING = 40;

/** Adds the most useful log line and the rollback command to a failed convergence. Other errors pass through. */
export async function withRollbackAdvice(error: unknown, service: Service, where: Places): Promise<never> {
  const { client } = service;
  const { logs } = where;
  const { history } = client;
  // Without a history there is no rollback to advise, and the logs are those of another application, which are not ours to read.
  if (!(error instanceof RdError) || error.code !== 'ERR_CONVERGE_FAILED' || !history) throw error;
  const [engine, outcome] = await client.status().then(
    (status) => [status.engine.name, status.transaction?.state] as const,
    () => [],
  );
  // The current engine is not the one that failed.
  if (outcome === 'returned') throw error;
  // The engine's log, which is more detailed than ours, comes first.
  const ofEngine = engine === undefined ? undefined : `${ENGINE_PROGRAMS[engine]}.log`;
  const details = [...error.details];
  for (const name of [ofEngine, SERVICE_LOG]) {
    if (name === undefined) continue;
    const file = join(logs, name);
    const lines = await lastLines(file);
    const line = name === SERVICE_LOG ? lastWarning(lines) : lines.at(-1);
    if (line === undefined) continue;
    details.push(`${file}: ${plainText(line)}`);
    break;
  }
  throw new RdError('ERR_CONVERGE_FAILED', error.message, {
    cause: error,
    details,
    advice: error.advice ?? (await rollbackAdvice(client, history)),
  });
}

/** Returns advice for a rollback, which may be rejected: a disk that has grown never shrinks. */
async function rollbackAdvice(client: PlanClient, history: ServiceClient['history']): Promise<string> {
  try {
    const { lastChange, rollbackRequest, sinceReset } = await import('../../../src/client/history.ts');
    const entries = sinceReset(await history());
    await client.plan(rollbackRequest(entries, lastChange(entries).to).request);
  } catch (error) {
    // No other failure means that the rollback would be rejected.
    if (error instanceof RdError && error.code === 'ERR_SETTINGS_INVALID') {
      const why = error.details.join('; ') || error.message;
      return `The previous state cannot be restored (${why}). Fix the profile and apply it again.`;
    }
  }
  return 'To restore the previous state, run: rdctl rollback';
}

/** Failures of a connection that worked when the apply began. */
const CONNECTION_ERRORS: readonly string[] = ['ERR_NOT_RUNNING', 'ERR_CONNECTION'];

/**
 * Explains a service that exited during an apply: the state of its settings, and how to continue. Other errors pass
 * through.
 */
export async function withServiceExit(
  error: unknown,
  { status }: Service,
  where: Places,
  sent: boolean,
): Promise<never> {
  // The process of another application is unknown.
  if (!(error instanceof RdError) || !CONNECTION_ERRORS.includes(error.code) || status.pid === 0) throw error;
  const { processTable } = await import('../../../src/os/process-table.ts');
  const lives = await processTable.isAlive({ pid: status.pid });
  const { homeService } = await import('../../../src/client/home-service.ts');
  const home = await homeService(where);
  const isEnding = home.kind === 'passing' && home.holder.ending;
  if (isEnding || (!lives && home.kind === 'none' && home.cut === undefined)) throw stoppedError(error);
  const saved = sent ? 'the settings are saved' : 'it is not known whether the settings were saved';
  throw new RdError(
    'ERR_CONNECTION',
    `The service (pid ${status.pid}) ${lives ? 'stopped responding' : 'exited'} while applying; ${saved}.`,
    {
      cause: error,
      details: [`Its log: ${join(where.logs, SERVICE_LOG)}`],
      advice: `Run the same apply again; it ${lives ? '' : 'starts the service and '}continues from there.`,
    },
  );
}

/** Returns the last warning or error in the service's log; later lines do not explain it. */
function lastWarning(lines: readonly string[]): string | undefined {
  for (const line of lines.toReversed()) {
    const record = parseLine(line);
    if (!record || typeof record.level !== 'number' || record.level < WARNING) continue;
    return [record.time, record.msg, record.step, record.error].filter((part) => typeof part === 'string').join(': ');
  }
  return undefined;
}

/** Parses a line of the log. The first one of a tail may be truncated. */
function parseLine(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

async function lastLines(file: string): Promise<string[]> {
  try {
    const handle = await open(file, 'r');
    try {
      const { size } = await handle.stat();
      const length = Math.min(size, TAIL_BYTES);
      const { buffer } = await handle.read(Buffer.alloc(length), 0, length, size - length);
      return buffer
        .toString('utf8')
        .split('\n')
        .filter((line) => line.trim() !== '');
    } finally {
      await handle.close();
    }
  } catch {
    // The log is missing or unreadable; the error is reported without it.
    return [];
  }
}
