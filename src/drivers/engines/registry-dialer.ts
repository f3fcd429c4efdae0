import { readdir, readFile } from 'node:fs/promises';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { BlockList, connect as connectTcp, isIP } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, rootCertificates } from 'node:tls';
import { isLoopback } from '../../settings/image-reference.ts';

/** Connects from this host to registries, through the proxy configured in the environment. */
export interface RegistryDialer {
  /** Rejects with an error that names the unreachable host. */
  connect(target: Target): Promise<Socket>;
}

export interface Target {
  host: string;
  port: number;
  tls: boolean;
  /** True if the target may be this machine itself or its link-local network, under any name. */
  mayBeLocal: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;
const CONNECT_MS = 30_000;

/** System CA bundles: company certificates are there and not in Node's list. */
const BUNDLES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];

export function createRegistryDialer(environment: Environment): RegistryDialer {
  const trusted = readTrustedCertificates(environment);
  return {
    async connect({ host, port, tls, mayBeLocal }) {
      const proxy = proxyFor(environment, { host, port, tls });
      if (!mayBeLocal && isLocalAddress(host)) throw localTarget(host, port);
      const socket = proxy
        ? await throughProxy(proxy, host, port)
        : await waitForConnection(connectTcp({ host, port }), host, port);
      if (!mayBeLocal && !proxy && isLocalAddress(socket.remoteAddress ?? '')) {
        socket.destroy();
        throw localTarget(host, port);
      }
      if (!tls) return socket;
      const servername = isIP(host) ? {} : { servername: host };
      const { authorities, ...identity } = await registryCertificates(host, port);
      const ca = [...(await trusted), ...authorities];
      const secure = connectTls({ socket, host, ...servername, ...identity, ca, ALPNProtocols: ['http/1.1'] });
      return waitForConnection(secure, host, port, 'secureConnect');
    },
  };
}

const LOCAL_ADDRESSES = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
] as const)
  LOCAL_ADDRESSES.addSubnet(network, prefix, 'ipv4');
LOCAL_ADDRESSES.addSubnet('::', 127, 'ipv6');
LOCAL_ADDRESSES.addSubnet('fe80::', 10, 'ipv6');

/** True for loopback and link-local addresses, including IPv4-mapped IPv6. */
function isLocalAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && LOCAL_ADDRESSES.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

function localTarget(host: string, port: number): Error {
  return new Error(`${host}:${port} is on this machine or its link, and no pattern of the allowed images names it`);
}

/** Returns the proxy for a target from the conventional environment variables, or undefined for a direct connection. */
export function proxyFor(environment: Environment, { host, port, tls }: Omit<Target, 'mayBeLocal'>): URL | undefined {
  const value = (name: string) => environment[name.toUpperCase()] || environment[name.toLowerCase()];
  const chosen = value(tls ? 'https_proxy' : 'http_proxy');
  if (!chosen || isLoopback(host.includes(':') ? `[${host}]` : host) || isExempt(value('no_proxy') ?? '', host, port))
    return undefined;
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(chosen) ? chosen : `http://${chosen}`);
  if (!url || !/^https?:$/.test(url.protocol)) throw new Error(`the proxy for ${host} is not the URL of an HTTP proxy`);
  return url;
}

function isExempt(list: string, host: string, port: number): boolean {
  return list.split(',').some((entry) => {
    const text = entry.trim().toLowerCase();
    if (text === '') return false;
    if (text === '*') return true;
    const [, name = text, only] = /^(.*?)(?::(\d+))?$/.exec(text) ?? [];
    if (only !== undefined && Number(only) !== port) return false;
    if (isIP(host)) return name === host || isWithin(name, host);
    const domain = name.replace(/^\*?\./, '');
    return (name === domain && host.toLowerCase() === domain) || host.toLowerCase().endsWith(`.${domain}`);
  });
}

function isWithin(range: string, address: string): boolean {
  const [network = '', prefix = ''] = range.split('/');
  const family = isIP(network);
  if (!family || !/^\d{1,3}$/.test(prefix) || Number(prefix) > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  list.addSubnet(network, Number(prefix), family === 4 ? 'ipv4' : 'ipv6');
  return list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

async function throughProxy(proxy: URL, host: string, port: number): Promise<Socket> {
  const secure = proxy.protocol === 'https:';
  const at = { host: proxy.hostname.replace(/^\[|\]$/g, ''), port: Number(proxy.port) || (secure ? 443 : 80) };
  const socket = secure
    ? await waitForConnection(connectTls({ ...at, servername: at.host }), at.host, at.port, 'secureConnect')
    : await waitForConnection(connectTcp(at), at.host, at.port);
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const login = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const headers = {
    host: authority,
    ...(proxy.username === '' ? {} : { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` }),
  };
  return new Promise((resolve, reject) => {
    const call = request({ method: 'CONNECT', path: authority, headers, createConnection: () => socket });
    const timer = setTimeout(() => call.destroy(timeoutError()), CONNECT_MS);
    call.on('error', (cause) => {
      clearTimeout(timer);
      reject(new Error(`the proxy ${at.host}:${at.port} failed: ${cause.message}`, { cause }));
    });
    call.on('connect', (response, tunnel, head) => {
      clearTimeout(timer);
      if (response.statusCode !== 200) {
        tunnel.destroy();
        return reject(new Error(`the proxy ${at.host}:${at.port} refused ${authority}: ${response.statusCode}`));
      }
      if (head.length > 0) tunnel.unshift(head);
      // Node passes the connection as a stream; `createConnection` above expects this socket.
      resolve(socket);
    });
    call.end();
  });
}

function timeoutError(): Error {
  return new Error(`no response within ${CONNECT_MS / 1000} s`);
}

function waitForConnection<S extends Socket>(socket: S, host: string, port: number, event = 'connect'): Promise<S> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) => {
      clearTimeout(timer);
      reject(new Error(`${host}:${port} cannot be reached: ${cause.message}`, { cause }));
    };
    const timer = setTimeout(() => socket.destroy(timeoutError()), CONNECT_MS);
    socket.on('error', fail);
    socket.once(event, () => {
      clearTimeout(timer);
      // The listener stays: an error before the caller adds its own would crash this process.
      resolve(socket);
    });
  });
}

/** Directory in which dockerd's users keep certificates of their own registries, by the name that an image has. */
const REGISTRY_CERTIFICATES = '/etc/docker/certs.d';

/** Returns the authorities (`*.crt`) for one registry, and the client certificates for it (`*.cert` with its `*.key`). */
async function registryCertificates(host: string, port: number) {
  const name = host.includes(':') ? `[${host}]` : host;
  const directory = join(REGISTRY_CERTIFICATES, port === 443 ? name : `${name}:${port}`);
  const files = (await readdir(directory).catch(() => [])).sort();
  const texts = (ending: string) =>
    Promise.all(files.filter((file) => file.endsWith(ending)).map((file) => readFile(join(directory, file), 'utf8')));
  const authorities = await texts('.crt');
  const [cert, key] = [await texts('.cert'), await texts('.key')];
  return { authorities, ...(cert.length > 0 && key.length > 0 ? { cert, key } : {}) };
}

async function readTrustedCertificates(environment: Environment): Promise<string[]> {
  for (const file of [environment.SSL_CERT_FILE, ...BUNDLES]) {
    const text = file ? await readFile(file, 'utf8').catch(() => undefined) : undefined;
    if (text?.includes('BEGIN CERTIFICATE')) return [...rootCertificates, text];
  }
  return [...rootCertificates];
}
