import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the server does with requests for one path, instead of serving it. */
type Mischief = (request: IncomingMessage, response: ServerResponse, body: Buffer | undefined) => void;

export interface ReleaseServer {
  channelsUrl: string;
  releasesUrl: string;
  /** Requested paths in order, including redirects. */
  requests: string[];
  /** By channel name. Each entry has the other fields of the real list as well. */
  channels: Map<string, string>;
  /** Serves a release with its checksums. */
  publish(version: string, files: Record<string, Buffer | string>, arch?: string): void;
  /** By path, `/v1.33.6+k3s1/k3s` or `/channels`. */
  mischief: Map<string, Mischief>;
  close(): Promise<void>;
}

export function sha256(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}

/** A release server on the loopback interface, with the response formats of the real one. */
export async function releaseServer(): Promise<ReleaseServer> {
  const files = new Map<string, Buffer>();
  const requests: string[] = [];
  const channels = new Map<string, string>();
  const mischief = new Map<string, Mischief>();
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').replace(/^\/download/, '');
    requests.push(path);
    const body = path === '/channels' ? Buffer.from(JSON.stringify(channelList(channels))) : files.get(path);
    const special = mischief.get(path);
    if (special) return special(request, response, body);
    serve(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    channelsUrl: `${base}/channels`,
    releasesUrl: `${base}/download`,
    requests,
    channels,
    mischief,
    publish(version, contents, arch = 'amd64') {
      const named = Object.entries(contents);
      for (const [name, data] of named) files.set(`/${version}/${name}`, Buffer.from(data));
      const sums = named.map(([name, data]) => `${sha256(data)}  ${name}\n`).join('');
      if (!(`sha256sum-${arch}.txt` in contents)) files.set(`/${version}/sha256sum-${arch}.txt`, Buffer.from(sums));
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The usual response, with ranges. */
export function serve(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void {
  if (!body) return void response.writeHead(404).end('Not Found');
  const mark = `"${sha256(body).slice(0, 16)}"`;
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  const goesOn = from > 0 && from < body.length && request.headers['if-range'] === mark;
  const part = goesOn ? body.subarray(from) : body;
  response.writeHead(goesOn ? 206 : 200, {
    etag: mark,
    'content-length': part.length,
    ...(goesOn ? { 'content-range': `bytes ${from}-${body.length - 1}/${body.length}` } : {}),
  });
  response.end(part);
}

function channelList(channels: ReadonlyMap<string, string>) {
  return {
    type: 'collection',
    links: { self: 'https://update.example/v1-release/channels' },
    resourceType: 'channels',
    data: [...channels].map(([name, latest]) => ({
      id: name,
      type: 'channel',
      links: { self: `https://update.example/v1-release/channels/${name}` },
      name,
      latest,
    })),
  };
}
