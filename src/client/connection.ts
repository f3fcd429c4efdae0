import { COMPATIBLE } from '../product.ts';
import type { ResponseHead } from './http-exchange.ts';

/** A service's address and our credentials. */
export interface Connection {
  host: string;
  port: number;
  user: string;
  password: string;
  /** The flag or variable that supplied the password, such as `--password`; absent if the file did. */
  passwordFrom?: string;
  /** The connection file; absent if flags supplied everything. */
  file?: string;
  /** The process named in the file. */
  pid?: number;
  /** The revision of the service's interface, according to the file. */
  revision?: number;
  /** Whether it was found in Rancher Desktop's directory rather than ours. */
  foreign: boolean;
  reached: Reached;
}

/** How the listener is verified before anything is sent. */
export type Reached =
  /** A Unix socket that no other user can have created. Host and port are for messages only. */
  | { by: 'socket'; path: string }
  /** The user named the host or port, or the listener is this process. */
  | { by: 'word' }
  /** Our service proves that it knows the file's password. `orUser`: a listener that cannot is checked as under `user`. */
  | { by: 'proof'; password: string; orUser?: true }
  /** The listening process belongs to this user. `unseen: 'accepted'` also trusts a listener whose owner the system does not show. */
  | { by: 'user'; unseen?: 'accepted' };

/**
 * Explains a stale connection file: `/home/x/app-engine.json is stale: the process 12 that wrote it is no longer listening`. Returns undefined
 * without a file.
 */
export function staleText({ file, pid, reached }: Connection): string | undefined {
  if (file === undefined || reached.by === 'word') return undefined;
  const who = pid === undefined ? 'the process that wrote it' : `the process that wrote it (pid ${pid})`;
  return `${file} is stale: ${who} is no longer listening`;
}

/** Advice for a missing or wrong listener. */
export function staleAdvice(connection: Connection): string {
  const stale = staleText(connection);
  if (stale === undefined) return 'Start it with `rdctl start`.';
  const other = connection.foreign ? `Start ${COMPATIBLE.productName}, or an rdctl service,` : 'Start one';
  return `${stale}. ${other} with \`rdctl start\`.`;
}

/** One request. `path` is sent unchanged; `body` is sent byte for byte as JSON. */
export interface HttpRequest {
  method: string;
  path: string;
  body?: string | Buffer;
  headers?: Readonly<Record<string, string>>;
  /** Milliseconds until the complete response; `answerLimit` by default. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Receives the body of a 200 response in chunks. The response's `body` is then empty, and the timeout covers the head only. */
  onPart?(part: Buffer): void;
}

/** A response of any status. */
export interface HttpResponse extends ResponseHead {
  body: Buffer;
}

/** Sends one request to a service; tests use an in-process one. */
export type Transport = (connection: Connection, request: HttpRequest) => Promise<HttpResponse>;

/** Formats host and port for a URL. */
export function addressOf({ host, port }: Pick<Connection, 'host' | 'port'>): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
