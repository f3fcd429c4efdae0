import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { run } from '../../src/os/run.ts';
import { loopbackRegistry } from './loopback-registry.ts';

/** A registry elsewhere, as a desktop in a company sees it: its names resolve only at a proxy that requires a password. */
export interface DistantRegistry {
  /** Its name without TLS. */
  readonly plain: string;
  /** Its name with TLS, by a certificate of the company. */
  readonly secure: string;
  /** Where tests reach it directly, without TLS. */
  readonly host: string;
  /** What the proxy was asked for, as `host:port`. */
  readonly asked: readonly string[];
  /** How a service finds proxy and certificate. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export async function distantRegistry(): Promise<DistantRegistry> {
  const [plain, secure] = ['registry.allowed.test', 'tls.allowed.test'];
  const registry = await loopbackRegistry();
  const folder = mkdtempSync(join(tmpdir(), 'rd-tls-'));
  const certificate = await selfSigned(folder, secure);
  const front = createTlsServer(certificate, (client) => tie(client, dial({ host: '127.0.0.1', port: registry.port })));
  await once(front.listen(0, '127.0.0.1'), 'listening');
  const asked: string[] = [];
  const company = companyProxy(asked, (authority) =>
    authority === `${secure}:443` ? (front.address() as AddressInfo).port : registry.port,
  );
  await once(company.listen(0, '127.0.0.1'), 'listening');
  const proxy = `http://someone:secret@127.0.0.1:${(company.address() as AddressInfo).port}`;
  return {
    plain,
    secure,
    host: registry.host,
    asked,
    env: {
      HTTP_PROXY: proxy,
      HTTPS_PROXY: proxy,
      NO_PROXY: '',
      no_proxy: '',
      SSL_CERT_FILE: join(folder, 'cert.pem'),
    },
    async close() {
      company.closeAllConnections();
      company.close();
      front.close();
      rmSync(folder, { recursive: true, force: true });
      await registry.close();
    },
  };
}

/** A proxy that requires credentials and resolves every name to the loopback interface. */
function companyProxy(asked: string[], portOf: (authority: string) => number): Server {
  const server = createServer((_request, response) => response.writeHead(500).end());
  const login = `Basic ${Buffer.from('someone:secret').toString('base64')}`;
  server.on('connect', (request, client) => {
    const authority = request.url ?? '';
    asked.push(authority);
    if (request.headers['proxy-authorization'] !== login) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const far = dial({ host: '127.0.0.1', port: portOf(authority) });
    far.once('connect', () => client.write('HTTP/1.1 200 OK\r\n\r\n'));
    tie(client, far);
  });
  return server;
}

function tie(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
    from.pipe(to);
  }
}

async function selfSigned(folder: string, name: string): Promise<{ key: Buffer; cert: Buffer }> {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`];
  await run(['openssl', 'req', '-x509', ...curve, ...names, '-keyout', key, '-out', cert]);
  return { key: readFileSync(key), cert: readFileSync(cert) };
}
