import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Connection } from '../../src/client/connection.ts';
import { proofOf } from '../../src/client/service-proof.ts';
import { writeConnection } from './scripted-server.ts';
import { temporaryDirectory } from './temp-home.ts';

export interface RecordingProxy {
  /** The environment of a tool that finds the service through the proxy. */
  env: Record<string, string>;
  /** `PUT /v1/settings`, in order of arrival. */
  requests: string[];
  /** The requests that can change something. */
  writes(): string[];
}

/** A proxy between a tool and a service that records the requests. Ends with the test. */
export async function recordingProxy(connection: Connection): Promise<RecordingProxy> {
  const requests: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const { method, url = '', headers } = incoming;
    const nonce = /^\/v2\/proof\?nonce=(.*)$/.exec(url)?.[1];
    if (nonce !== undefined) {
      outgoing.end(JSON.stringify({ proof: proofOf({ password: connection.password, port }, nonce) }));
      return;
    }
    requests.push(`${method} ${url}`);
    const options = { host: connection.host, port: connection.port, method, path: url, headers, agent: false };
    const forward = request(options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    forward.on('error', () => outgoing.destroy());
    incoming.pipe(forward);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const home = temporaryDirectory();
  const { port } = server.address() as AddressInfo;
  writeConnection(join(home, 'app-engine.json'), { user: connection.user, password: connection.password, port });
  return {
    env: { RDCTL_HOME: home },
    requests,
    writes: () => requests.filter((line) => !line.startsWith('GET ') && !/^POST \/v2\/plan(\?|$)/.test(line)),
  };
}
