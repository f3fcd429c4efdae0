import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { openQmp } from '../../src/drivers/machines/qemu/monitor.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const GREETING = '{"QMP": {"version": {}, "capabilities": []}}\r\n';
let server: Server | undefined;
afterEach(() => new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve())));

interface Asked {
  execute: string;
  arguments?: object;
  id: number;
}

/** A monitor that sends a greeting and answers each command by script; undefined: no answer. */
async function monitor(
  script: (asked: Asked, socket: Socket) => string | undefined,
  greeting: string | undefined = GREETING,
): Promise<string> {
  const path = join(temporaryDirectory(), 'qmp');
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (greeting !== undefined) socket.write(greeting);
    let rest = '';
    socket.on('data', (data: Buffer) => {
      const lines = (rest + data.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const asked: Asked = JSON.parse(line);
        const answer = asked.execute === 'qmp_capabilities' ? done(asked) : script(asked, socket);
        if (answer !== undefined) socket.write(answer);
      }
    });
  });
  await new Promise<void>((resolve) => server?.listen(path, resolve));
  return path;
}

function done({ id }: Asked, value: unknown = {}): string {
  return `${JSON.stringify({ return: value, id })}\r\n`;
}

describe('a connection to the QEMU monitor', () => {
  test('negotiates the protocol, and matches answers to commands in any order', async () => {
    const late: string[] = [];
    const path = await monitor((asked, socket) => {
      late.unshift(done(asked, { was: asked.execute, with: asked.arguments ?? null }));
      if (late.length === 2) socket.write(late.join(''));
      return undefined;
    });
    const qmp = await openQmp(path);
    const answers = await Promise.all([qmp.execute('one'), qmp.execute('two', { size: 1 })]);
    expect(answers).toEqual([
      { was: 'one', with: null },
      { was: 'two', with: { size: 1 } },
    ]);
    qmp.close();
    await expect(qmp.execute('three')).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  });

  test('parses lines in pieces, also split inside a character', async () => {
    const path = await monitor((asked, socket) => {
      const bytes = Buffer.from(done(asked, { name: 'größe' }));
      socket.write(bytes.subarray(0, bytes.indexOf(0xc3) + 1), () =>
        socket.write(bytes.subarray(bytes.indexOf(0xc3) + 1)),
      );
      return undefined;
    });
    const qmp = await openQmp(path);
    expect(await qmp.execute('query-name')).toEqual({ name: 'größe' });
    qmp.close();
  });

  test('reports an error in the words of QEMU, and stays usable', async () => {
    const path = await monitor((asked) =>
      asked.execute === 'bad'
        ? `${JSON.stringify({ error: { class: 'GenericError', desc: 'Device not found' }, id: asked.id })}\n`
        : done(asked, 'fine'),
    );
    const qmp = await openQmp(path);
    await expect(qmp.execute('bad')).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: 'QEMU refused: Device not found',
    });
    expect(await qmp.execute('good')).toBe('fine');
    qmp.close();
  });

  test('an event is no answer', async () => {
    const path = await monitor((asked) => `{"event": "STOP", "data": {"a": 1}}\n{"event": "RESUME"}\n${done(asked)}`);
    const qmp = await openQmp(path);
    expect(await qmp.execute('cont')).toEqual({});
    qmp.close();
  });

  test('is unusable after a timeout, because the next answer could be the late one', async () => {
    const path = await monitor(() => undefined);
    const qmp = await openQmp(path);
    await expect(qmp.execute('savevm', undefined, { timeoutMs: 1 })).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: expect.stringContaining('savevm'),
    });
    await expect(qmp.execute('query-status')).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  });

  test('stops waiting when the signal aborts, and when QEMU exits', async () => {
    const path = await monitor((asked, socket) => {
      if (asked.execute === 'quit') socket.destroy();
      return undefined;
    });
    const abort = new AbortController();
    const first = await openQmp(path);
    const waiting = first.execute('slow', undefined, { signal: abort.signal });
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    const second = await openQmp(path);
    await expect(second.execute('quit')).rejects.toMatchObject({ message: expect.stringContaining('closed') });
    await expect(openQmp(path, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });

  test.each([
    ['something else', 'HTTP/1.1 400 Bad Request\r\n\r\n', /not JSON/],
    ['JSON that is no object', '[1]\n', /not JSON/],
    ['silence', undefined, /within 0.05 s/],
  ])('fails when it gets %s instead of a greeting', async (_what, greeting, message) => {
    const path = await monitor(() => undefined, greeting ?? '');
    await expect(openQmp(path, { timeoutMs: 50 })).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: expect.stringMatching(message),
    });
  });

  test('fails when nothing listens', async () => {
    await expect(openQmp(join(temporaryDirectory(), 'none'))).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: expect.stringContaining('cannot be reached'),
    });
  });
});
