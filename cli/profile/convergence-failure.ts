import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import type { Places } from '../../src/storage/places.ts';
import { type Service, targetOf } from '../session/service.ts';
import { plainText } from '../views/value.ts';

const TAIL_BYTES = 16 * 1024;
/** The program behind each engine, whose log says more than ours. */
const ENGINE_LOGS: Readonly<Record<string, string>> = { moby: 'dockerd.log', containerd: 'containerd.log' };
const SERVICE_LOG = 'service.log';
/** Level of a warning in it. */
const WARNING = 40;

/** A failed convergence gets the last line of the log that knows most, and the command back. Other errors pass as they are. */
export async function withWayBack(error: unknown, service: Service, where: Places): Promise<never> {
  const { client } = service;
  const { logs } = where;
  // The logs of another application are its own business.
  if (!(error instanceof RdError) || error.code !== 'ERR_CONVERGE_FAILED' || client.foreign) throw error;
  const engine = await client.status().then(
    (status) => status.engine.name,
    () => undefined,
  );
  const ofEngine = engine === undefined ? undefined : ENGINE_LOGS[engine];
  const details = [...error.details];
  for (const name of [ofEngine, SERVICE_LOG]) {
    if (name === undefined) continue;
    const file = join(logs, name);
    const lines = await lastLines(file);
    const line = name === SERVICE_LOG ? lastTrouble(lines) : lines.at(-1);
    if (line === undefined) continue;
    details.push(`${file}: ${plainText(line)}`);
    break;
  }
  throw new RdError('ERR_CONVERGE_FAILED', error.message, {
    cause: error,
    details,
    advice: error.advice ?? (await wayBack(service, where)),
  });
}

/** What was there before may be refused now: a disk that has grown never shrinks. */
async function wayBack({ client, status }: Service, where: Places): Promise<string> {
  try {
    const { previousState } = await import('../../src/client/previous.ts');
    const { request } = (await previousState(where))(targetOf(status));
    await client.plan(request);
  } catch (error) {
    // Nothing else that goes wrong here says that it would be refused.
    if (error instanceof RdError && error.code === 'ERR_SETTINGS_INVALID') {
      const why = error.details.join('; ') || error.message;
      return `What was there before cannot come back (${why}). Correct the profile and apply it again.`;
    }
  }
  return 'Go back to what was there before with: rdctl apply --previous';
}

/** Failures of a connection that was good when the apply began. */
const GONE: readonly string[] = ['ERR_NOT_RUNNING', 'ERR_CONNECTION'];

/** A service that went away under an apply: what is known of its settings, and how to go on. Other errors pass as they are. */
export async function withEnd(
  error: unknown,
  { client, status }: Service,
  { logs }: Places,
  sent: boolean,
): Promise<never> {
  if (!(error instanceof RdError) || !GONE.includes(error.code) || client.foreign) throw error;
  const { processTable } = await import('../../src/storage/process-identity.ts');
  const lives = await processTable.isAlive({ pid: status.pid });
  const saved = sent ? 'the settings are saved' : 'whether the settings were saved is not known';
  throw new RdError(
    'ERR_CONNECTION',
    `The service (pid ${status.pid}) ${lives ? 'stopped answering' : 'ended'} while applying; ${saved}.`,
    {
      cause: error,
      details: [`Its log: ${join(logs, SERVICE_LOG)}`],
      advice: `Run the same apply again: ${lives ? 'it goes on from there' : 'it starts the service and goes on from there'}.`,
    },
  );
}

/** The last warning or error of the service, for people; what came after it says nothing about it. */
function lastTrouble(lines: readonly string[]): string | undefined {
  for (const line of lines.toReversed()) {
    const record = parsed(line);
    if (!record || typeof record.level !== 'number' || record.level < WARNING) continue;
    return [record.time, record.msg, record.step, record.error].filter((part) => typeof part === 'string').join(': ');
  }
  return undefined;
}

/** The first line of a tail may be half a line. */
function parsed(line: string): JsonObject | undefined {
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
    // No log, or not ours to read: the reason of the failure stands without it.
    return [];
  }
}
