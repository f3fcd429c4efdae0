import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import type { Client } from '../../src/client/contract.ts';
import type { StreamMessage } from '../../src/client/event-stream.ts';
import { EVENT_KINDS, type EventDocument, type EventKind } from '../../src/events/event.ts';
import { rawRequest } from '../helpers/raw-request.ts';
import { rounds } from '../helpers/rounds.ts';
import { schemaCheck } from '../helpers/schema-check.ts';
import { startService, type TestService } from '../helpers/service.ts';

const validStatus = schemaCheck('status');

const validEvent = schemaCheck('event');

/** Reads a stream until the test ends or `leave` is called. */
function reading(client: Client, kinds: readonly EventKind[], since?: string) {
  const leaving = new AbortController();
  onTestFinished(() => leaving.abort());
  const messages: StreamMessage[] = [];
  let position = '';
  const ended = client.events?.({
    ...{ kinds, since, signal: leaving.signal },
    onMessage: (message) => messages.push(message),
    onPosition: (id) => {
      position = id;
    },
  });
  const over = ended?.catch((error: unknown) => error);
  const events = () => messages.filter((message): message is EventDocument => message.kind === 'Event');
  const types = () => events().map(({ type }) => type);
  return { messages, events, types, over, position: () => position, leave: () => leaving.abort() };
}

const namespace = (client: Client, name: string) => client.putSettings({ version: 19, images: { namespace: name } });

function changesOf(events: readonly EventDocument[]): unknown[] {
  return events.flatMap((event) => (event.type === 'change' ? event.change.changes.map(({ after }) => after) : []));
}

test('a change is an event, then its steps and conditions, and then its outcome; every document is valid', async () => {
  const running = await startService();
  const { client } = running;
  await running.converged();
  const reader = reading(client, EVENT_KINDS);
  await vi.waitFor(() => expect(reader.messages).toHaveLength(1));
  const { generation } = await client.putSettings({ version: 19, containerEngine: { name: 'containerd' } });
  await vi.waitFor(() => expect(reader.types()).toContain('outcome'));
  expect(reader.events()[0]).toMatchObject({
    type: 'change',
    change: { generation, by: { how: 'set' }, changes: [{ path: 'containerEngine.name', after: 'containerd' }] },
  });
  expect(reader.events().at(-1)).toMatchObject({ type: 'outcome', outcome: { generation, result: 'converged' } });
  expect(reader.types()).toEqual(expect.arrayContaining(['phase', 'condition']));
  for (const message of reader.messages) {
    const validate = message.kind === 'Event' ? validEvent : validStatus;
    expect(validate(message), JSON.stringify(validate.errors)).toBe(true);
  }
});

test('without kinds there are only statuses, the current one first, for readers that know nothing else', async () => {
  const { client } = await startService();
  const leaving = new AbortController();
  let text = '';
  const onPart = (part: Buffer) => {
    text += part.toString();
  };
  const over = client
    .request({ method: 'GET', path: '/v2/events', signal: leaving.signal, onPart })
    .catch((error: unknown) => error);
  await namespace(client, 'first');
  await vi.waitFor(() => expect(text.match(/^data: /gm)?.length).toBeGreaterThan(1));
  leaving.abort();
  await over;
  expect(new Set(text.match(/^event: .*$/gm))).toEqual(new Set(['event: status']));
  expect(JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '')).toMatchObject({ kind: 'Status' });
});

test('an unknown kind is refused', async () => {
  const { client } = await startService();
  const reply = await client.request({ method: 'GET', path: '/v2/events?kinds=status,chnage' });
  expect([reply.status, JSON.parse(reply.body.toString())]).toMatchObject([400, { code: 'ERR_BODY_INVALID' }]);
});

test('a reader continues over restarts of the service with what it missed, and only that', async () => {
  const first = await startService();
  await first.converged();
  const reader = reading(first.client, ['change', 'outcome']);
  await namespace(first.client, 'seen');
  await vi.waitFor(() => expect(reader.types()).toEqual(['change', 'outcome']));
  reader.leave();
  await namespace(first.client, 'missed');
  await first.converged();
  await first.service.stop('the test restarts it');
  const second = await startService({ home: first.home });
  await second.converged();
  await namespace(second.client, 'missed, too');
  await second.service.stop('the test restarts it again');
  const third = await startService({ home: first.home });
  const again = reading(third.client, ['change', 'outcome', 'service'], reader.position());
  await vi.waitFor(() => expect(again.types()).toContain('service'));
  const restart = ['stopped', 'started'];
  expect(changesOf(again.events())).toEqual(['missed', ...restart, 'missed, too', ...restart]);
  expect(again.types().filter((type) => type === 'reset')).toEqual([]);
  const late = reading(third.client, ['change'], '0000000a-1-99-99');
  await vi.waitFor(() => expect(late.types()).toEqual(['reset']));
});

test('maintenance and its failure are events', async () => {
  const running = await startService();
  await running.converged();
  const reader = reading(running.client, ['maintenance', 'status']);
  await vi.waitFor(() => expect(reader.messages).not.toEqual([]));
  await running.client.request({ method: 'POST', path: '/v1/snapshots', body: JSON.stringify({ name: 'one' }) });
  await vi.waitFor(() => expect(reader.events()).toHaveLength(2));
  expect(reader.events().map((event) => event.type === 'maintenance' && event.maintenance.state)).toEqual([
    'begun',
    'ended',
  ]);
});

/** A connection that asks for events and never reads. */
async function stalledReader({ service }: TestService): Promise<void> {
  const { port, user, password } = service.connection;
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.pause();
  await once(socket, 'connect');
  const headers = [`Authorization: ${authorization}`];
  socket.write(rawRequest({ method: 'GET', target: '/v2/events?kinds=all', headers }));
}

/** Bytes that are waiting in this process to be sent, per connection of a server. */
const LARGEST_BACKLOG = 1024 * 1024;

test('readers that never read cost no memory, and the others get everything', async () => {
  const running = await startService();
  await running.converged();
  for (let count = 0; count < 5; count += 1) await stalledReader(running);
  const reader = reading(running.client, ['change']);
  await vi.waitFor(() => expect(reader.position()).not.toBe(''));
  const sent: string[] = [];
  // Each change is large, so that what the kernel buffers for a connection is soon full.
  const large = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`WSL-${n}`, true]));
  const before = process.memoryUsage().arrayBuffers;
  for (let count = 0; count < rounds(60, 2_000); count += 1) {
    sent.push(`round-${count}`);
    await running.client.putSettings({
      version: 19,
      images: { namespace: `round-${count}` },
      diagnostics: { mutedChecks: Object.fromEntries(Object.keys(large).map((key) => [key, count % 2 === 0])) },
    });
  }
  await vi.waitFor(() => expect(changesOf(reader.events()).filter((value) => typeof value === 'string')).toEqual(sent));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(5 * LARGEST_BACKLOG);
});

test('every one of 100 readers gets every change', async () => {
  const running = await startService();
  await running.converged();
  const clients = Array.from({ length: 100 }, () => createClient(running.service.connection));
  const readers = clients.map((client) => reading(client, ['change']));
  await vi.waitFor(() => expect(readers.every(({ position }) => position() !== '')).toBe(true));
  const names = Array.from({ length: 5 }, (_, count) => `to-all-${count}`);
  for (const name of names) await namespace(running.client, name);
  await vi.waitFor(() => expect(readers.map(({ events }) => changesOf(events()))).toEqual(readers.map(() => names)));
});
