import { request } from 'node:http';

/** A response of dockerd. */
export interface EngineAnswer {
  status: number;
  body: Buffer;
}

/** One request to dockerd over its socket; rejects when nothing answers. */
export function callEngine(
  endpoint: string,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object | Buffer,
  extra: Readonly<Record<string, string>> = {},
): Promise<EngineAnswer> {
  const socketPath = endpoint.replace(/^unix:\/\//, '');
  const data = body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const type = Buffer.isBuffer(body) ? 'application/x-tar' : 'application/json';
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': type, ...extra };
    const call = request({ socketPath, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }));
      response.on('error', reject);
    });
    call.setTimeout(60_000, () => call.destroy(new Error(`${method} ${path}: no answer`)));
    call.on('error', reject);
    call.end(data);
  });
}

/** Like `callEngine`, but anything other than success is an error. */
export async function engineJson(
  endpoint: string,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object | Buffer,
): Promise<Record<string, unknown>> {
  const { status, body: answer } = await callEngine(endpoint, method, path, body);
  const text = answer.toString('utf8');
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
  const last = text.trim().split('\n').at(-1) ?? '';
  return last === '' ? {} : JSON.parse(last);
}

/** A container to create. */
export interface ContainerOptions {
  image: string;
  command: string[];
  /** `{'80/tcp': [{HostIp, HostPort}]}` */
  ports?: Record<string, { HostIp: string; HostPort: string }[]>;
  binds?: string[];
  network?: string;
  restart?: string;
  name?: string;
}

/** Creates and starts a container; returns its id. */
export async function startContainer(endpoint: string, options: ContainerOptions): Promise<string> {
  const created = await engineJson(
    endpoint,
    'POST',
    `/containers/create${options.name ? `?name=${options.name}` : ''}`,
    {
      Image: options.image,
      Cmd: options.command,
      ExposedPorts: Object.fromEntries(Object.keys(options.ports ?? {}).map((port) => [port, {}])),
      HostConfig: {
        // The first process of a container ignores SIGTERM by default, and busybox does not handle it.
        Init: true,
        PortBindings: options.ports ?? {},
        Binds: options.binds ?? [],
        NetworkMode: options.network ?? 'default',
        RestartPolicy: { Name: options.restart ?? 'no' },
      },
    },
  );
  const id = String(created.Id);
  await engineJson(endpoint, 'POST', `/containers/${id}/start`);
  return id;
}

/** Runs a container to completion; returns its exit status and output. */
export async function runContainer(
  endpoint: string,
  options: ContainerOptions,
): Promise<{ status: number; output: string }> {
  const id = await startContainer(endpoint, options);
  const { StatusCode } = await engineJson(endpoint, 'POST', `/containers/${id}/wait`);
  const logs = await callEngine(endpoint, 'GET', `/containers/${id}/logs?stdout=1&stderr=1`);
  await engineJson(endpoint, 'DELETE', `/containers/${id}`);
  return { status: Number(StatusCode), output: unframed(logs.body) };
}

/** Each piece of output has an 8-byte header: its stream, three zeros, its length. */
function unframed(body: Buffer): string {
  const pieces: string[] = [];
  for (let at = 0; at + 8 <= body.length; ) {
    const length = body.readUInt32BE(at + 4);
    pieces.push(body.toString('utf8', at + 8, at + 8 + length));
    at += 8 + length;
  }
  return pieces.join('');
}

/** The port on this host that a container's port is published on. */
export async function publishedPort(endpoint: string, id: string, port: string): Promise<number> {
  const { NetworkSettings } = await engineJson(endpoint, 'GET', `/containers/${id}/json`);
  const ports = (NetworkSettings as { Ports: Record<string, { HostPort: string }[]> }).Ports;
  return Number(ports[port]?.[0]?.HostPort);
}
