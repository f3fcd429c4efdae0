import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { explainRegistry } from '../../allowed-images/denial.ts';
import { canonicalRegistry } from '../../allowed-images/registry-name.ts';
import { passOn } from './pass-on.ts';
import type { GuardParts } from './pull-guard.ts';
import { denyRegistry } from './registry-answer.ts';
import { registryRequest } from './registry-request.ts';

/**
 * The proxy that a dockerd with a list of allowed images has as its only way out. What goes through TLS shows nothing but its host:
 * that must belong to a registry of which something is allowed. Plain HTTP shows the image as well.
 */
export function outboundProxy(parts: GuardParts): Server {
  const server = createServer((request, response) => {
    plain(request, response, parts).catch((error: Error) => denyRegistry(response, 502, error.message));
  });
  server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on('error', () => client.destroy());
    tunnel(request.url ?? '', client, head, parts).catch((error: Error) => {
      client.end(statusLine(502, error.message));
    });
  });
  return server;
}

/** Clients show the reason phrase of a refused tunnel to people. */
function statusLine(status: number, reason: string): string {
  return `HTTP/1.1 ${status} ${reason.replace(/[^ -~]+/g, ' ')}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
}

async function tunnel(
  authority: string,
  client: Duplex,
  head: Buffer,
  { policy, out, refused }: GuardParts,
): Promise<void> {
  const target = splitAuthority(authority);
  if (!target) return void client.end(statusLine(400, 'this is no host and port'));
  const registry = canonicalRegistry(authority);
  const reaches = () => policy.list().reaches(registry);
  if (!reaches()) {
    const why = explainRegistry(registry, policy.list().patterns);
    refused(why);
    return void client.end(statusLine(403, why));
  }
  // dockerd keeps connections for later requests, which a new list may not allow.
  client.once(
    'close',
    policy.onChange(() => reaches() || client.destroy()),
  );
  const far = await out.connect({ ...target, tls: 'theirs' });
  if (client.destroyed) return void far.destroy();
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  if (head.length > 0) far.write(head);
  join(client, far);
}

function join(client: Duplex, far: Socket): void {
  far.on('error', () => client.destroy());
  client.on('error', () => far.destroy());
  client.on('close', () => far.destroy());
  far.on('close', () => client.destroy());
  client.pipe(far);
  far.pipe(client);
}

function splitAuthority(authority: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:/\s]+)):(\d{1,5})$/.exec(authority);
  const host = match?.[1] ?? match?.[2];
  return host === undefined ? undefined : { host, port: Number(match?.[3]) };
}

/** A request in clear text, with its whole address. */
async function plain(
  request: IncomingMessage,
  response: ServerResponse,
  { policy, out, refused }: GuardParts,
): Promise<void> {
  const address = request.url ?? '';
  const target = URL.canParse(address) ? new URL(address) : undefined;
  if (target?.protocol !== 'http:')
    return denyRegistry(response, 400, 'this proxy wants the whole address of a request');
  const registry = canonicalRegistry(target.host);
  const asked = registryRequest(request.method ?? 'GET', target.pathname);
  const why = policy.refusal(registry, asked);
  if (why !== undefined) {
    refused(why);
    return denyRegistry(response, 403, why);
  }
  await passOn({ request, response, registry, asked, target, out, policy });
}
