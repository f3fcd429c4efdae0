import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request as send } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { paired, type Result, result } from './measure.ts';
import { type BenchService, cleanEnv, end, finish, residentMiB, startService, TOOL } from './service.ts';

/** Where requests go, and with what. */
interface Place {
  port: number;
  /** Of the status, and of what is attacked. */
  status: string;
  plan: string;
  events: string;
  settings: string;
  /** Headers of the owner, and of a token with the scope `plan`. */
  owner: Record<string, string>;
  token: Record<string, string>;
}

/** Begins an attack, and resolves with what ends it. */
type Attack = (place: Place) => Promise<() => void>;

const EMPTY = { status: '/', plan: '/', events: '/events', settings: '/', owner: {}, token: {} };
const REQUESTS = 2_000;
const list = Array.from({ length: 9_900 }, (_, at) => `registry.example/tool-${at}`);
const LARGEST_PLAN = JSON.stringify({
  settings: { version: 19, containerEngine: { allowedImages: { enabled: true, patterns: list } } },
  state: 'unmanaged',
  prune: [],
});

function call(
  place: Place,
  agent: Agent,
  path: string,
  headers: Record<string, string>,
  body?: string,
  method = body === undefined ? 'GET' : 'POST',
): Promise<void> {
  return new Promise((done) => {
    const sent = body === undefined ? headers : { ...headers, 'Content-Type': 'application/json' };
    const options = { host: '127.0.0.1', port: place.port, agent, path, method, headers: sent };
    send(options, (reply: IncomingMessage) => reply.resume().once('close', done))
      .once('error', () => done())
      .end(body);
  });
}

/** So many clients that send one request after the other. */
function repeat(clients: number, once: (agent: Agent) => Promise<void>): () => void {
  const agent = new Agent({ keepAlive: true });
  let ended = false;
  const loop = async () => {
    while (!ended) await once(agent);
  };
  for (let client = 0; client < clients; client += 1) void loop();
  return () => {
    ended = true;
    agent.destroy();
  };
}

/** Connections that send something and take nothing. */
async function hold(place: Place, count: number, text: string): Promise<() => void> {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(place.port, '127.0.0.1').on('error', () => undefined);
    socket.pause().write(text);
    return socket;
  });
  await Promise.all(sockets.map((socket) => new Promise((ready) => socket.once('connect', ready))));
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

function headOf(path: string, headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines.join('')}\r\n`;
}

/** Readers that take nothing, and four large changes that are sent to each. */
async function pausedReaders(place: Place): Promise<() => void> {
  const stop = await hold(place, 120, headOf(`${place.events}?kinds=all`, place.owner));
  const agent = new Agent();
  for (let change = 0; change < 4; change += 1) {
    const patterns = list.map((pattern) => `${pattern}-${change}-${Date.now()}`);
    const body = JSON.stringify({ version: 19, containerEngine: { allowedImages: { patterns } } });
    await call(place, agent, place.settings, place.owner, body, 'PUT');
  }
  return stop;
}

const ATTACKS: Record<string, Attack> = {
  none: async () => () => undefined,
  'requests without a password': async (place) => repeat(8, (agent) => call(place, agent, place.status, {})),
  'the largest plans': async (place) => repeat(4, (agent) => call(place, agent, place.plan, place.token, LARGEST_PLAN)),
  '120 paused readers': pausedReaders,
  '400 half heads': (place) => hold(place, 400, 'GET / HTTP/1.1\r\nHost: 127'),
};

/** Milliseconds that 99 of 100 requests for the status stay below while the attack goes on. */
async function p99(place: Place, attack: Attack, during: () => void = () => undefined): Promise<number> {
  const stop = await attack(place);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  for (let count = 0; count < REQUESTS; count += 1) {
    const began = performance.now();
    await call(place, agent, place.status, place.owner);
    times.push(performance.now() - began);
  }
  during();
  stop();
  agent.destroy();
  return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}

async function placeOf({ env }: BenchService): Promise<Place> {
  const { port, user, password } = JSON.parse(readFileSync(join(env.RDCTL_HOME ?? '', 'app-engine.json'), 'utf8'));
  const words = [process.execPath, TOOL, 'token', 'create', '--scope', 'plan', '--name', 'bench', '-o', 'json'];
  const { output } = await finish(words, env);
  const token = /rdctl_[\w.-]+/.exec(output)?.[0];
  if (token === undefined) throw new Error(`no token to measure with: ${output}`);
  return {
    ...{ port, status: '/v2/status', plan: '/v2/plan', events: '/v2/events', settings: '/v1/settings' },
    owner: { Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` },
    token: { Authorization: `Bearer ${token}` },
  };
}

async function emptyServer(): Promise<{ child: ChildProcess; place: Place }> {
  const child = fork('bench/fastify-server.mjs', { env: cleanEnv() });
  const port = await new Promise<number>((ready) => child.once('message', (message) => ready(Number(message))));
  return { child, place: { ...EMPTY, port } };
}

/** The status under each attack, beside an empty fastify under the same; and the memory of the service beside that of before. */
export async function attacks(profile: string, rounds: number): Promise<Result[]> {
  const results: Result[] = [];
  for (const [name, attack] of Object.entries(ATTACKS)) {
    await using service = await startService(profile);
    const place = await placeOf(service);
    const empty = await emptyServer();
    // Both have their code compiled.
    for (const each of [place, empty.place]) await p99(each, async () => () => undefined);
    const idle = residentMiB(service.pid);
    let most = 0;
    const look = () => {
      most = Math.max(most, residentMiB(service.pid));
    };
    const figures = await paired(
      rounds,
      () => p99(place, attack, look),
      () => p99(empty.place, attack),
    );
    await end(empty.child);
    const shared = { aim: { sign: '<=', value: 2 }, unit: 'ms', rounds } as const;
    results.push(
      result({
        name: `attack: ${name}`,
        compared: 'p99 of the status / of an empty fastify under the same',
        ...figures,
        ...shared,
      }),
      result({
        name: `attack: ${name}, memory`,
        compared: 'resident memory of the service under it / before',
        ...{ ratio: most / idle, subject: most, reference: idle },
        ...{ aim: { sign: '<=', value: 3.5 }, unit: 'MiB', rounds },
      }),
    );
  }
  return results;
}
