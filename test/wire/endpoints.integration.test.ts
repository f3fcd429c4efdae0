import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { OpenApiDocument } from '../../src/api/openapi.ts';
import { ENDPOINTS } from '../../src/api/routes/listings.ts';
import { startApi } from '../helpers/api.ts';
import { startService, type TestServiceOptions } from '../helpers/service.ts';
import { type Agreement, agreementWith, operationOf } from './agreement.ts';
import { exchange } from './raw.ts';
import type { Row, Wire } from './row.ts';
import { TABLES } from './rows/index.ts';

const TYPES = {
  text: 'text/plain; charset=utf-8',
  json: 'application/json; charset=utf-8',
  metrics: 'text/plain; version=0.0.4; charset=utf-8',
  none: undefined,
};

/** Requests that change nothing share a service per kind, by how it was started. */
const shared = new Map<string, Promise<Wire>>();
const ends: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

/** A service that has answered earlier requests that change nothing, not even refused ones. */
function sharedWire(options: TestServiceOptions = {}): Promise<Wire> {
  const key = JSON.stringify(options);
  const known = shared.get(key);
  if (known) return known;
  const home = mkdtempSync(join(tmpdir(), 'rdctl-wire-'));
  ends.push(() => rmSync(home, { recursive: true, force: true }));
  const begun = wire({ ...options, home }, (end) => ends.push(end));
  shared.set(key, begun);
  return begun;
}

function changesNothing({ request, status, before }: Row): boolean {
  const reads = /^(GET|HEAD|OPTIONS) /.test(request);
  return before === undefined && (reads || (status >= 400 && status < 500));
}

async function wire(options: TestServiceOptions = {}, atEnd?: (stop: () => Promise<void>) => void): Promise<Wire> {
  const started = await startService(options, atEnd);
  return {
    ...started,
    send(request, body, headers = {}) {
      const [method = '', target = ''] = split(request);
      return exchange(started.service.connection, {
        method,
        target,
        headers,
        ...(body === undefined ? {} : { body: textOf(body) }),
      });
    },
  };
}

/** Objects as JSON, texts and bytes unchanged. */
function textOf(body: Row['body'] = ''): string | Buffer {
  return typeof body === 'object' && !Buffer.isBuffer(body) ? JSON.stringify(body) : body;
}

/** Only at the first blank: a target may contain more of them. */
function split(request: string): [string, string] {
  const blank = request.indexOf(' ');
  return [request.slice(0, blank), request.slice(blank + 1)];
}

async function described(): Promise<OpenApiDocument> {
  const reply = await startApi().client.request({ method: 'GET', path: '/v2/openapi.json' });
  return JSON.parse(reply.body.toString());
}

let agreement: Agreement | undefined;

async function hold(row: Row): Promise<void> {
  agreement ??= agreementWith(await described());
  const service = await (changesNothing(row) ? sharedWire(row.given) : wire(row.given));
  if (row.before === 'converged') await service.converged();
  else await row.before?.(service);
  const body = row.bodyFor?.(service) ?? row.body;
  if (row.status < 300 && !row.loose) {
    expect(agreement.request(...split(row.request), textOf(body).toString())).toEqual([]);
  }
  const reply = await service.send(row.request, body, row.headers);
  expect({ status: reply.status, type: reply.headers['content-type'] }).toEqual({
    status: row.status,
    type: TYPES[row.type],
  });
  expect(reply.interim).toEqual(row.interim ?? []);
  if (row.type === 'none') expect(reply.body).toBe('');
  if (typeof row.reply === 'string') expect(reply.body).toBe(row.reply);
  else if (row.reply instanceof RegExp) expect(reply.body).toMatch(row.reply);
  else if (row.reply !== undefined) expect(JSON.parse(reply.body)).toEqual(row.reply);
  for (const [name, value] of Object.entries(row.replyHeaders ?? {})) {
    if (value === null) expect(reply.headers).not.toHaveProperty([name]);
    else expect(reply.headers[name]).toMatch(value);
  }
  expect(agreement.reply(...split(row.request), reply)).toEqual([]);
  await row.after?.(service, reply);
}

describe.each(Object.entries(TABLES))('%s', (_name, rows) => {
  const named = rows.map(
    (row) => [[row.request.slice(0, 80), row.when, `(${row.fact})`].filter(Boolean).join(' '), row] as const,
  );
  test.each(named)('%s', (_title, row) => hold(row));
});

describe('the tables', () => {
  const all = Object.values(TABLES).flat();

  test('list every described endpoint, and only those succeed', async () => {
    const document = await described();
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const used = new Set(all.flatMap(({ request }) => operationOf(document, ...split(request)) ?? []));
    const unused = operations.filter((line) => {
      const operation = operationOf(document, ...split(line));
      return operation === undefined || !used.has(operation);
    });
    expect(unused).toEqual([]);
  });

  test('list every endpoint of the compatible interface', () => {
    const requests = all.map(({ request }) => request.split('?', 1)[0]);
    const missing = ENDPOINTS.filter(({ method, name }) => !requests.includes(`${method} /v1/${name}`));
    expect(missing).toEqual([]);
  });
});
