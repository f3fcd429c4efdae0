import { RdError } from '../errors.ts';
import { systemCode } from '../os/io-error.ts';
import type { Connection } from './connection.ts';
import type { HttpRequest } from './http.ts';

type Address = Pick<Connection, 'host' | 'port'>;

/** A failed request, formatted as in Rancher Desktop's `rdctl`: `Get "http://127.0.0.1:6107/": EOF`. */
export function requestText(
  address: Address,
  { method, path }: Pick<HttpRequest, 'method' | 'path'>,
  cause: unknown,
): string {
  const verb = method.charAt(0).toUpperCase() + method.slice(1).toLowerCase();
  return `${verb} "http://${addressOf(address)}${path}": ${reasonText(address, cause)}`;
}

function reasonText(address: Address, cause: unknown): string {
  const code = systemCode(cause);
  const dial = `dial tcp ${addressOf(address)}: connect: `;
  switch (code) {
    case 'ENOTFOUND':
      return `dial tcp: lookup ${address.host}: no such host`;
    case 'ECONNREFUSED':
    case 'ENOENT':
      return `${dial}connection refused`;
    case 'EHOSTUNREACH':
      return `${dial}no route to host`;
    case 'ENETUNREACH':
      return `${dial}network is unreachable`;
    case 'ECONNRESET':
      return 'EOF';
    default:
      // The aggregate error of several addresses has no message.
      return (cause instanceof Error ? cause.message : String(cause)) || `${code}`;
  }
}

/** Host and port as in a URL. */
export function addressOf({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * A refused connection, formatted in full like `api` and `extension` of Rancher Desktop's `rdctl`; other errors pass
 * through.
 */
export function fullConnectionError(address: Address, request: HttpRequest, error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_NOT_RUNNING' || error.cause === undefined) return error;
  const { advice, cause } = error;
  const message = requestText(address, request, cause);
  return new RdError('ERR_NOT_RUNNING', message, { cause, ...(advice === undefined ? {} : { advice }) });
}
