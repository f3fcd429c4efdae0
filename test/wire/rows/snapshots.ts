import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Row, Wire } from '../row.ts';
import { bodyRows } from './bodies.ts';

const CREATED = 'Snapshot successfully created';
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
const off = { power: 'stopped' } as const;
const record = (name: string, description = '') => ({ created: expect.stringMatching(RFC_3339), name, description });
const create = (name: string, description?: string) => (wire: Wire) =>
  wire.send('POST /v1/snapshots', { name, ...(description === undefined ? {} : { description }) });

const refused = (when: string, name: unknown, message: string, fact = 'api 17.3'): Row => ({
  request: 'POST /v1/snapshots',
  when,
  fact,
  body: { name },
  status: 400,
  type: 'text',
  reply: message,
  given: off,
  after: async ({ send }) => expect((await send('GET /v1/snapshots')).body).toBe('[]'),
});

/** The response of every request with a name in the query to a bad one. */
const named = (request: string, operation: string): Row[] => [
  {
    request,
    when: 'no name',
    fact: 'api 17.2',
    status: 400,
    type: 'text',
    reply: 'Snapshot name is required in query parameters',
    given: off,
  },
  {
    request: `${request}?name=`,
    fact: 'api 17.2',
    status: 400,
    type: 'text',
    reply: 'Snapshot name is required in query parameters',
    given: off,
  },
  {
    request: `${request}?name=a&name=b`,
    fact: 'api 17.2',
    status: 400,
    type: 'text',
    reply: 'Invalid snapshot name ["a","b"]: not a string.',
    given: off,
  },
  {
    request: `${request}?name=unknown`,
    fact: 'api 17.4',
    status: 400,
    type: 'text',
    reply: `failed to ${operation} snapshot "unknown": can't find snapshot "unknown"`,
    given: off,
  },
];

export const snapshotRows: readonly Row[] = [
  {
    request: 'GET /v1/snapshots',
    when: 'none',
    fact: 'seed: snapshots; api 17.1',
    status: 200,
    type: 'json',
    reply: '[]',
    given: off,
  },
  {
    request: 'GET /v1/snapshots',
    when: 'two',
    fact: 'api 17.1: oldest first, compact',
    status: 200,
    type: 'json',
    given: off,
    before: async (wire) => {
      await create('zwei', 'with\nlines')(wire);
      await create('ein "s"/🙂')(wire);
    },
    reply: [record('zwei', 'with\nlines'), record('ein "s"/🙂')],
    after: async (_wire, { body }) =>
      expect(body).toMatch(/^\[\{"created":"[^"]+","name":"zwei","description":"with\\nlines"\},/),
  },
  {
    request: 'POST /v1/snapshots',
    when: 'of a running backend',
    fact: 'seed: snapshots; api 17.2, 17.5',
    body: { name: 'first', description: 'one', other: 1 },
    status: 200,
    type: 'text',
    reply: CREATED,
    before: 'converged',
    after: async ({ send, here, converged }) => {
      expect(JSON.parse((await send('GET /v1/snapshots')).body)).toEqual([record('first', 'one')]);
      expect((await converged()).backendState).toBe('STARTED');
      expect(existsSync(here.backendLock)).toBe(false);
    },
  },
  {
    request: 'POST /v1/snapshots',
    when: 'the same name again',
    fact: 'api 17.3',
    body: { name: 'first' },
    status: 400,
    type: 'text',
    reply: 'name "first" already exists',
    given: off,
    before: create('first'),
  },
  refused('no name', undefined, 'The name field is required', 'api 17.2'),
  refused('an empty name', '', 'The name field is required', 'api 17.2'),
  refused('a number for a name', 7, 'Invalid snapshot name 7: not a string.', 'api 19.32'),
  refused('too long', 'n'.repeat(251), `invalid name "${'n'.repeat(29)}…": max length is 250, 251 were specified`),
  refused(
    'a tab',
    'a\tb',
    String.raw`invalid character '\t' at position 1 in name: all characters must be printable or a space`,
  ),
  refused('a blank in front', ' a', 'invalid name " a": must not start with a white-space character'),
  refused('a blank at the end', 'a ', 'invalid name "a ": must not end with a white-space character'),
  {
    request: 'POST /v1/snapshots',
    when: 'a name like an option',
    fact: 'api 19.32: a name as any other',
    body: { name: '--help' },
    status: 200,
    type: 'text',
    reply: CREATED,
    given: off,
    after: async ({ send }) => expect((await send('GET /v1/snapshots')).body).toContain('"name":"--help"'),
  },
  ...bodyRows('POST /v1/snapshots', {
    empty: 'error processing JSON request block',
    notJson: 'error processing JSON request block',
    null: 'The name field is required',
    scalar: 'The name field is required',
    array: 'The name field is required',
  }),
  {
    request: 'DELETE /v1/snapshots?name=first',
    fact: 'seed: snapshots; api 17.2',
    status: 200,
    type: 'text',
    reply: 'Snapshot successfully deleted',
    given: off,
    before: create('first'),
    after: async ({ send }) => expect((await send('GET /v1/snapshots')).body).toBe('[]'),
  },
  ...named('DELETE /v1/snapshots', 'delete'),
  {
    request: 'POST /v1/snapshot/restore?name=first',
    fact: 'seed: snapshot restore; api 17.2, 17.5',
    status: 200,
    type: 'text',
    reply: 'Snapshot successfully restored',
    given: off,
    before: async (wire) => {
      await create('first')(wire);
      await wire.send('PUT /v1/settings', { version: 19, images: { showAll: false } });
    },
    after: async ({ client }) =>
      expect((await client.settings()).settings).toMatchObject({ images: { showAll: true } }),
  },
  ...named('POST /v1/snapshot/restore', 'restore'),
  {
    request: 'POST /v1/snapshots/cancel',
    when: 'nothing to cancel',
    fact: 'seed: snapshots; api 17.2',
    status: 200,
    type: 'text',
    reply: 'Snapshot operation canceled',
    given: off,
  },
  {
    request: 'POST /v1/snapshots',
    when: 'the lock of another program',
    fact: 'api 12.4, 17.4',
    body: { name: 'first' },
    status: 400,
    type: 'text',
    reply:
      /^failed to create snapshot: backend lock file already exists; if there is no snapshot operation in progress, you can remove this error with `rdctl snapshot unlock`/,
    given: off,
    before: async ({ here }) => {
      const { writeFileSync } = await import('node:fs');
      writeFileSync(here.backendLock, '{"action":"Creating snapshot \\"x\\""}');
    },
    after: async ({ send, home }) => {
      expect((await send('GET /v1/backend_state')).body).toBe('{"vmState":"STOPPED","locked":true}');
      expect(existsSync(join(home, 'backend.lock'))).toBe(true);
    },
  },
];
