import { describe, expect, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import type { Snapshots } from '../../src/features/snapshots/contract.ts';
import { startApi } from '../helpers/api.ts';

const GOES_ON = { stop: false };
const OWN = { foreign: false };
const FAILED = 'failed to restore snapshot "x": can\'t find snapshot "x"';

/** Records the calls; those for a snapshot named `fails` fail. */
function noted(): { calls: unknown[][]; snapshots: Snapshots } {
  const calls: unknown[][] = [];
  const note =
    (what: string) =>
    async (...args: unknown[]) => {
      calls.push([what, ...args]);
      if (args[0] === 'fails') throw new RdError('ERR_SNAPSHOT', FAILED);
    };
  return {
    calls,
    snapshots: {
      list: async () => [{ created: '2026-01-02T03:04:05Z', name: 'one', description: '' }],
      create: note('create'),
      remove: note('remove'),
      restore: note('restore'),
      async cancel() {
        calls.push(['cancel']);
        return false;
      },
    },
  };
}

describe('the snapshot routes', () => {
  test.each<[string, string, string | undefined, number, string, unknown[][]]>([
    ['GET', '/v1/snapshots', undefined, 200, '[{"created":"2026-01-02T03:04:05Z","name":"one","description":""}]', []],
    ['POST', '/v1/snapshots', '{"name":"a"}', 200, 'Snapshot successfully created', [['create', 'a', '', GOES_ON]]],
    [
      'POST',
      '/v1/snapshots',
      '{"name":"a","stop":true}',
      200,
      'Snapshot successfully created',
      [['create', 'a', '', { stop: true }]],
    ],
    ['POST', '/v1/snapshots', '{"name":"a","stop":1}', 400, 'Invalid value of stop 1: neither true nor false.', []],
    [
      'POST',
      '/v1/snapshots',
      '{"name":"--help","description":"d\\n","other":1}',
      200,
      'Snapshot successfully created',
      [['create', '--help', 'd\n', GOES_ON]],
    ],
    ['POST', '/v1/snapshots', '{"name":"fails"}', 400, FAILED, [['create', 'fails', '', GOES_ON]]],
    ['POST', '/v1/snapshots', '{}', 400, 'The name field is required', []],
    ['POST', '/v1/snapshots', '{"name":""}', 400, 'The name field is required', []],
    ['POST', '/v1/snapshots', '[]', 400, 'The name field is required', []],
    ['POST', '/v1/snapshots', '7', 400, 'The name field is required', []],
    ['POST', '/v1/snapshots', 'null', 400, 'The name field is required', []],
    ['POST', '/v1/snapshots', '', 400, 'error processing JSON request block', []],
    ['POST', '/v1/snapshots', '{', 400, 'error processing JSON request block', []],
    ['POST', '/v1/snapshots', '{"name":7}', 400, 'Invalid snapshot name 7: not a string.', []],
    ['POST', '/v1/snapshots', '{"name":["a"]}', 400, 'Invalid snapshot name ["a"]: not a string.', []],
    ['POST', '/v1/snapshots', '{"name":"a","description":7}', 400, 'Invalid snapshot description 7: not a string.', []],
    ['DELETE', '/v1/snapshots?name=a%20b', undefined, 200, 'Snapshot successfully deleted', [['remove', 'a b']]],
    ['DELETE', '/v1/snapshots?name=fails', undefined, 400, FAILED, [['remove', 'fails']]],
    ['DELETE', '/v1/snapshots', undefined, 400, 'Snapshot name is required in query parameters', []],
    ['DELETE', '/v1/snapshots?name=', undefined, 400, 'Snapshot name is required in query parameters', []],
    ['DELETE', '/v1/snapshots?name=a&name=b', undefined, 400, 'Invalid snapshot name ["a","b"]: not a string.', []],
    ['POST', '/v1/snapshot/restore?name=a', undefined, 200, 'Snapshot successfully restored', [['restore', 'a', OWN]]],
    [
      'POST',
      '/v1/snapshot/restore?name=a&foreign=true',
      undefined,
      200,
      'Snapshot successfully restored',
      [['restore', 'a', { foreign: true }]],
    ],
    ['POST', '/v1/snapshot/restore?name=fails', undefined, 400, FAILED, [['restore', 'fails', OWN]]],
    ['POST', '/v1/snapshot/restore', undefined, 400, 'Snapshot name is required in query parameters', []],
    ['POST', '/v1/snapshots/cancel', undefined, 200, 'Snapshot operation canceled', [['cancel']]],
    ['POST', '/v1/snapshots/cancel', 'anything', 200, 'Snapshot operation canceled', [['cancel']]],
    ['PUT', '/v1/snapshots', '{}', 404, 'Unknown command: PUT /v1/snapshots', []],
  ])('%s %s %s', async (method, path, body, status, text, expected) => {
    const { calls, snapshots } = noted();
    const { client } = startApi({ snapshots });
    const answer = await client.request({ method, path, ...(body === undefined ? {} : { body }) });
    expect({ status: answer.status, text: answer.body.toString() }).toEqual({ status, text });
    expect(calls).toEqual(expected);
    const type = method === 'GET' ? 'application/json' : 'text/plain';
    expect(answer.headers['content-type']).toBe(`${type}; charset=utf-8`);
  });

  test.each<[string, number, string, string[]]>([
    ['{"mode":"fast"}', 200, 'Rancher Desktop fast reset successful', ['fast']],
    ['{"mode":"wipe"}', 200, 'Rancher Desktop wipe reset successful', ['wipe']],
    ['{}', 200, 'Rancher Desktop fast reset successful', ['fast']],
    ['[]', 200, 'Rancher Desktop fast reset successful', ['fast']],
    ['', 400, 'error processing JSON request block', []],
    ['{', 400, 'error processing JSON request block', []],
    ['null', 400, 'error processing JSON request block', []],
    ['"wipe"', 400, 'error processing JSON request block', []],
    ['{"mode":"slow"}', 400, 'invalid reset mode "slow"\nSend {"mode":"fast"} or {"mode":"wipe"}.', []],
    ['{"mode":true}', 400, 'invalid reset mode true\nSend {"mode":"fast"} or {"mode":"wipe"}.', []],
  ])('PUT /v1/k8s_reset %s', async (body, status, text, expected) => {
    const modes: string[] = [];
    const { client } = startApi({ resetBackend: async (mode) => void modes.push(mode) });
    const answer = await client.request({ method: 'PUT', path: '/v1/k8s_reset', body });
    expect({ status: answer.status, text: answer.body.toString() }).toEqual({ status, text });
    expect(modes).toEqual(expected);
  });

  test('a list that cannot be read is an error, not an empty list', async () => {
    const list = async () => {
      throw new RdError('ERR_IO', 'could not read the snapshots in /x: permission denied');
    };
    const { client } = startApi({ snapshots: { ...noted().snapshots, list } });
    const answer = await client.request({ method: 'GET', path: '/v1/snapshots' });
    expect(answer.status).toBe(500);
    expect(answer.body.toString()).toContain('permission denied');
  });
});
