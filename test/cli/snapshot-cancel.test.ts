import { expect, test } from 'vitest';
import { operate, type SnapshotServer } from '../../cli/commands/snapshot/operation.ts';
import { RdError } from '../../src/errors.ts';
import { fakeIo } from '../helpers/cli.ts';

/** An operation that ends with this message while it is being canceled. */
async function canceled(message: string, foreign: boolean) {
  const abort = new AbortController();
  const io = fakeIo({ signal: abort.signal });
  const unasked = () => Promise.reject(new Error('not in the script'));
  const client: SnapshotServer['client'] = {
    connection: { host: '127.0.0.1', port: 1, user: 'u', password: 'p', foreign, reached: { by: 'word' } },
    request: async () => ({ status: 200, statusText: 'OK', headers: {}, body: Buffer.from('') }),
    backendState: unasked,
    shutdown: unasked,
  };
  // Without a terminal, nothing of it is shown.
  const reports = {} as NonNullable<SnapshotServer['reports']>;
  const server = foreign ? { client } : { client, reports };
  const work = async () => {
    abort.abort('SIGINT');
    throw new RdError('ERR_SNAPSHOT', message);
  };
  const cutOff = { message: 'cut off', advice: 'again' };
  const caller = { io, globals: { port: '1' } } as unknown as Parameters<typeof operate>[1]['caller'];
  return operate(server, { caller, json: true, cancelling: 'Cancelling …', cutOff, work }).then(
    () => undefined,
    ({ code, message, advice }: RdError) => ({ code, message, advice }),
  );
}

test('only what was canceled and rolled back says that nothing was changed', async () => {
  const text = 'failed to restore snapshot "one": the operation was canceled, and everything is as it was before';
  expect(await canceled(text, false)).toEqual({ code: 'ERR_CANCELLED', message: text, advice: 'Nothing was changed.' });
  const failed = 'failed to restore snapshot "one": the previous state could not be put back';
  expect(await canceled(failed, false)).toEqual({ code: 'ERR_SNAPSHOT', message: failed, advice: undefined });
});

test('what another application did after a signal is its own to say', async () => {
  expect(await canceled('snapshot cancelled', true)).toEqual({
    code: 'ERR_CANCELLED',
    message: 'snapshot cancelled',
    advice: undefined,
  });
});
