import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { onTestFinished } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { canonical, clusterIn, flat, merge, refusals, restartReasons } from './foreign-rules.ts';
import { type ForeignVersion, foreignSettings, migratedPayload } from './foreign-shapes.ts';
import { writeConnection } from './scripted-server.ts';
import { temporaryDirectory } from './temp-home.ts';

type State = 'STOPPED' | 'STARTING' | 'STARTED' | 'STOPPING' | 'ERROR' | 'DISABLED';

interface Received {
  method: string;
  path: string;
  body: string;
}

export interface ForeignAppOptions {
  version: ForeignVersion;
  /** Dotted paths in its own format. */
  settings?: Record<string, JsonValue>;
  locked?: JsonObject;
  state?: State;
  /** Never started: nothing requires a restart. */
  neverStarted?: boolean;
  /** The outcome of the next start. */
  startFails?: boolean;
  /** How many queries each state of a restart lasts. */
  looksPerState?: number;
  /** Responses in place of those of the application. */
  intercept?: (request: Received, app: ForeignApp) => { status: number; body: string } | undefined;
}

/** The application as seen from outside, written from the facts about its interface. */
export interface ForeignApp {
  settings: JsonObject;
  /** One of its settings, by dotted path in its own format. */
  get(path: string): JsonValue | undefined;
  set(path: string, value: JsonValue): void;
  state: State;
  startFails: boolean;
  received: Received[];
  extensions: Record<string, string>;
  forwards: Map<string, number>;
  /** Requests that change something, in order: `PUT /v1/settings`. */
  writes(): string[];
  /** Bodies of the settings writes. */
  bodies(): JsonObject[];
  /** How often the backend was started. */
  starts: number;
  /** The environment of a tool that discovers it. */
  env: Record<string, string>;
  /** Its connection file. */
  file: string;
  port: number;
}

const HEADING = 'errors in attempt to update settings:';

/** Starts one on its own port, with a connection file where such an application writes it. */
export async function foreignApp(options: ForeignAppOptions): Promise<ForeignApp> {
  const { version, neverStarted = false, looksPerState = 1 } = options;
  const home = temporaryDirectory();
  const settings = foreignSettings(version);
  for (const [path, value] of Object.entries(options.settings ?? {})) setLeaf(settings, path, value);
  let running = structuredClone(settings);
  const locked = options.locked ?? {};
  const pending: { state: State; looks: number; enter?: () => void }[] = [];
  let delayed = false;

  const app: ForeignApp = {
    settings,
    get: (path) => leafAt(settings, path),
    set: (path, value) => setLeaf(settings, path, value),
    state: options.state ?? (clusterIn(settings) ? 'STARTED' : 'DISABLED'),
    startFails: options.startFails ?? false,
    received: [],
    extensions: {},
    forwards: new Map(),
    starts: 0,
    env: {
      HOME: home,
      XDG_DATA_HOME: join(home, 'data'),
      XDG_STATE_HOME: join(home, 'state'),
      XDG_CONFIG_HOME: join(home, 'config'),
    },
    file: join(home, 'data', 'rancher-desktop', 'rd-engine.json'),
    port: 0,
    writes: () =>
      app.received
        .filter(({ method, path }) => method !== 'GET' && path !== '/v1/propose_settings')
        .map(({ method, path }) => `${method} ${path}`),
    bodies: () =>
      app.received
        .filter(({ method, path }) => method === 'PUT' && path === '/v1/settings')
        .map(({ body }) => JSON.parse(body)),
  };
  const busy = () => app.state === 'STARTING' || app.state === 'STOPPING' || pending.length > 0;

  /** Time passes by queries: a state lasts for some of them and then changes to the next. */
  function tick(): void {
    const next = pending[0];
    if (!next) {
      if (delayed && !busy()) {
        delayed = false;
        restart();
      }
      return;
    }
    next.looks -= 1;
    if (next.looks > 0) return;
    pending.shift();
    app.state = next.state;
    next.enter?.();
  }

  function enqueue(...states: State[]): void {
    for (const state of states) pending.push({ state, looks: looksPerState });
  }

  function start(): void {
    enqueue('STARTING');
    pending.push({
      state: 'STARTED',
      looks: looksPerState,
      enter: () => {
        app.starts += 1;
        running = structuredClone(app.settings);
        app.state = app.startFails ? 'ERROR' : clusterIn(settings) ? 'STARTED' : 'DISABLED';
        app.startFails = false;
      },
    });
  }

  function restart(): void {
    if (app.state !== 'STOPPED') enqueue('STOPPING', 'STOPPED');
    start();
  }

  const reasons = (proposal: JsonObject) => (neverStarted ? {} : restartReasons(proposal, running));

  function putSettings(body: JsonObject): [number, string] {
    const refused = (line: string): [number, string] => [400, `${HEADING}\n${line}`];
    const sent = body.version;
    const required = 'updating settings requires specifying an API version, but';
    if (sent === undefined) return refused(`${required} no version was specified`);
    if (typeof sent !== 'number') return refused(`${required} "${sent}" is not a proper config version`);
    const payload = canonical(sent < version ? migratedPayload(body, version) : body);
    const wrong = refusals(payload, app.settings, locked);
    if (wrong.length > 0) return refused(wrong.join('\n'));
    const changed = flat(payload, app.settings).some(
      ([path, value]) =>
        leafAt(app.settings, path) !== undefined && !isDeepStrictEqual(value, leafAt(app.settings, path)),
    );
    if (!changed) return [202, 'no changes necessary'];
    // Unknown keys are accepted next to a known one that changes: a bug of the application.
    merge(app.settings, payload);
    // It compares all of its settings, so what was not proposed has a `desired` here.
    if (Object.keys(reasons(app.settings)).length === 0) return [202, 'settings updated; no restart required'];
    if (busy()) {
      delayed = true;
      return [202, 'UI is currently busy, but will eventually be reconfigured to apply requested changes'];
    }
    restart();
    return [202, 'reconfiguring Rancher Desktop to apply changes (this may take a while)'];
  }

  function putState(body: JsonObject): [number, string] {
    const { vmState } = body;
    if (vmState !== 'STARTED' && vmState !== 'STOPPED')
      return [500, `internal error: Error: invalid desired VM state "${vmState}"`];
    if (!busy()) {
      if (vmState === 'STARTED' && (app.state === 'STOPPED' || app.state === 'ERROR')) start();
      else if (vmState === 'STOPPED' && app.state !== 'STOPPED') enqueue('STOPPING', 'STOPPED');
    }
    return [202, 'received backend state'];
  }

  function answer({ method, path, body }: Received): { status: number; body: string; json?: boolean } {
    const url = new URL(path, 'http://x');
    const text = ([status, text]: [number, string]) => ({ status, body: text });
    switch (`${method} ${url.pathname}`) {
      case 'GET /v1/settings':
        return { status: 200, body: `${JSON.stringify(app.settings, null, 2)}\n` };
      case 'GET /v1/settings/locked':
        return { status: 200, body: `${JSON.stringify(locked, null, 2)}\n` };
      case 'GET /v1/backend_state':
        tick();
        return { status: 200, json: true, body: JSON.stringify({ vmState: app.state, locked: false }) };
      case 'PUT /v1/backend_state':
        return text(putState(JSON.parse(body)));
      case 'PUT /v1/settings':
        return text(putSettings(JSON.parse(body)));
      case 'PUT /v1/propose_settings': {
        const proposal = canonical(JSON.parse(body));
        const wrong = refusals(proposal, app.settings, locked);
        if (wrong.length > 0) return { status: 400, body: `Errors in proposed settings:\n${wrong.join('\n')}` };
        return { status: 200, json: true, body: JSON.stringify(reasons(proposal)) };
      }
      case 'PUT /v1/shutdown':
        return { status: 202, body: 'Shutting down.' };
      case 'GET /v1/extensions':
        return {
          status: 200,
          json: true,
          body: JSON.stringify(
            Object.fromEntries(
              Object.entries(app.extensions).map(([id, tag]) => [id, { version: tag, metadata: {}, labels: {} }]),
            ),
          ),
        };
      case 'POST /v1/extensions/install': {
        const id = url.searchParams.get('id') ?? '';
        const colon = id.lastIndexOf(':');
        app.extensions[id.slice(0, colon)] = id.slice(colon + 1);
        app.set('application.extensions.installed', { ...app.extensions });
        return { status: 201, body: 'Created' };
      }
      case 'POST /v1/extensions/uninstall': {
        const id = url.searchParams.get('id') ?? '';
        delete app.extensions[id.split(':')[0] ?? ''];
        app.set('application.extensions.installed', { ...app.extensions });
        return { status: 201, body: `Deleted ${id}` };
      }
      case 'POST /v1/port_forwarding': {
        const { namespace, service, k8sPort, hostPort } = JSON.parse(body);
        if (app.state !== 'STARTED') return { status: 400, body: 'Could not forward port' };
        app.forwards.set(`${namespace}/${service}:${k8sPort}`, hostPort);
        return { status: 200, body: String(hostPort) };
      }
      case 'DELETE /v1/port_forwarding': {
        const query = url.searchParams;
        app.forwards.delete(`${query.get('namespace')}/${query.get('service')}:${query.get('k8sPort')}`);
        return { status: 200, body: 'Port forwarding successfully deleted' };
      }
      default:
        return { status: 404, body: `Unknown command: ${method} ${url.pathname}` };
    }
  }

  const server = createServer((incoming, outgoing) => {
    readAll(incoming).then((body) => {
      const request = { method: incoming.method ?? '', path: incoming.url ?? '', body };
      app.received.push(request);
      const reply = options.intercept?.(request, app) ?? answer(request);
      const json = 'json' in reply && reply.json === true;
      outgoing.writeHead(reply.status, {
        'content-type': json ? 'application/json' : 'text/plain',
        'access-control-allow-origin': '*',
      });
      outgoing.end(reply.body);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  app.port = (server.address() as AddressInfo).port;
  writeConnection(app.file, { user: 'user', password: 'secret', port: app.port });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(home, { recursive: true, force: true });
  });
  return app;
}

async function readAll(stream: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString();
}
