import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { proofOf } from '../../src/client/service-proof.ts';

/** One request as it arrived. */
export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  /** Closes the connection instead of answering. */
  drop?: true;
  /** Never answers. */
  hold?: true;
}

/** Decides the response; `undefined` is a 404. */
export type Script = (request: Received) => Reply | undefined;

/** A scripted server that first proves to be the service of the file, and a home whose connection file points to it. */
export interface ScriptedServer extends AsyncDisposable {
  home: string;
  port: number;
  /** The environment of a tool that finds it. */
  env: Record<string, string>;
  received: Received[];
  /** Stops listening; the connection file stays. */
  close(): Promise<void>;
}

export async function scriptedServer(script: Script): Promise<ScriptedServer> {
  const received: Received[] = [];
  const server = createServer((incoming, outgoing) => {
    readAll(incoming).then((body) => {
      const request = { method: incoming.method ?? '', path: incoming.url ?? '', headers: incoming.headers, body };
      const nonce = /^\/v2\/proof\?nonce=(.*)$/.exec(request.path)?.[1];
      if (nonce !== undefined)
        return outgoing.end(JSON.stringify({ proof: proofOf({ password: 'secret', port }, nonce) }));
      received.push(request);
      const reply = script(request) ?? { status: 404 };
      if (reply.drop) incoming.socket.destroy();
      else if (!reply.hold) outgoing.writeHead(reply.status ?? 200, reply.headers).end(reply.body ?? '');
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  const home = mkdtempSync(join(tmpdir(), 'rdctl-scripted-'));
  writeConnection(join(home, 'app-engine.json'), { user: 'user', password: 'secret', port });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= new Promise<void>((done) => server.close(() => done()));
    server.closeAllConnections();
    return closing;
  };
  return {
    home,
    port,
    env: { RDCTL_HOME: home },
    received,
    close,
    async [Symbol.asyncDispose]() {
      await close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Writes a connection file. */
export function writeConnection(file: string, content: object): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(content), { mode: 0o600 });
}

async function readAll(stream: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString();
}
