import { readFile } from 'node:fs/promises';
import { type Client, createClient } from '../../src/client/client.ts';
import type { Connection } from '../../src/client/connection.ts';
import { RdError } from '../../src/errors.ts';
import { isObject } from '../../src/json.ts';
import { type Pace, realPace } from '../../src/process/pace.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { processTable } from '../../src/storage/process-identity.ts';
import { noArguments } from '../arguments.ts';
import { defineCommand, type GlobalFlags, type Io } from '../command.ts';

/** A stop of the backend takes its time; longer than this and somebody should look. */
const LIMIT_MS = 180_000;
const POLL_MS = 100;

export const shutdown = defineCommand({
  name: 'shutdown',
  summary: 'Stop the backend and the service',
  usage: '',
  description: `Asks the service to stop and waits until it is gone; nothing is ever killed. With
--wait=false it returns at once. When no service runs, there is nothing to do and nothing is said.`,
  flags: {
    wait: { type: 'boolean', summary: 'Wait until the service is gone (default true)' },
    target: {
      type: 'string',
      summary: 'Shut down the compatible application that was found',
      values: [COMPATIBLE.target],
    },
  },
  classic: true,
  async run({ flags, args, globals, io, connect }) {
    noArguments(args, 'shutdown');
    let answer: string;
    try {
      const client = createClient(await connect());
      const pid = await pidOf(client.connection);
      if (client.connection.foreign && !consents(flags.target, globals, io)) {
        await client.backendState({ signal: io.signal });
        throw wrongTarget(client.connection);
      }
      answer = await client.shutdown({ signal: io.signal });
      if (flags.wait !== false) await waitGone(client, pid, io, realPace);
    } catch (error) {
      if (error instanceof RdError && error.code === 'ERR_NOT_RUNNING') return 0;
      throw error;
    }
    io.out(`${answer}\n`);
    return 0;
  },
});

/** What was found by looking around must not be stopped by accident (design: "Identity and targets"). */
function consents(target: string | undefined, globals: GlobalFlags, io: Io): boolean {
  return Boolean(target ?? globals['config-path'] ?? io.env.RDCTL_CONFIG_PATH ?? io.env.RDCTL_COMPAT);
}

function wrongTarget({ file }: Connection): RdError {
  return new RdError('ERR_WRONG_TARGET', `what runs is ${COMPATIBLE.productName}, found through ${file}`, {
    advice: `If it is to be stopped, say so: rdctl shutdown --target ${COMPATIBLE.target}`,
  });
}

/** The process behind the connection file; absent when the file does not tell. */
async function pidOf({ file }: Connection): Promise<number | undefined> {
  if (file === undefined) return undefined;
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const value: unknown = JSON.parse(text);
  return isObject(value) && typeof value.pid === 'number' ? value.pid : undefined;
}

/** Gone: nothing listens any more, and the process that did has ended. */
async function waitGone(client: Client, pid: number | undefined, io: Io, pace: Pace): Promise<void> {
  const deadline = pace.now() + LIMIT_MS;
  while ((await answers(client, io)) || (pid !== undefined && (await processTable.isAlive({ pid })))) {
    if (io.signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted; the service goes on stopping.');
    if (pace.now() >= deadline) {
      throw new RdError('ERR_DEADLINE', `the service was asked to stop and still runs after ${LIMIT_MS / 1000} s`, {
        advice: `Look at its log${pid === undefined ? '' : `, or end the process ${pid}`}.`,
      });
    }
    await pace.sleep(POLL_MS, io.signal);
  }
}

async function answers(client: Client, io: Io): Promise<boolean> {
  try {
    await client.request({ method: 'GET', path: '/', timeoutMs: 2000, signal: io.signal });
    return true;
  } catch (error) {
    if (error instanceof RdError) return error.code === 'ERR_DEADLINE';
    throw error;
  }
}
