import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { PRODUCT } from '../../product.ts';

/** Where the registry gateway listens on the machine's 127.0.0.1, and the secret that authenticates its clients. */
export interface Gateway {
  port: number;
  /** Letters, digits, `-` and `_`. Stored only where root alone can read it. */
  secret: string;
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** The gateway's proxy URL for programs. */
export function proxyAddress({ port, secret }: Gateway): string {
  return `http://${PRODUCT.name}:${secret}@127.0.0.1:${port}`;
}

/** Whether a proxy request carries that secret. */
export function hasProxySecret(headers: IncomingHttpHeaders, secret: string): boolean {
  const login = Buffer.from(`${PRODUCT.name}:${secret}`).toString('base64');
  return same(headers['proxy-authorization'], `Basic ${login}`);
}

/**
 * What clients of a mirror send. A cookie, because clients drop cookies and passwords when a registry redirects them to its layer storage;
 * any other header, and the address, would leak there.
 */
export function secretCookie(secret: string): string {
  return `${PRODUCT.name}-gateway=${secret}`;
}

export function hasSecretCookie(headers: IncomingHttpHeaders, secret: string): boolean {
  return same(headers.cookie, secretCookie(secret));
}

/** Constant-time comparison. */
function same(given: string | undefined, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given ?? ''), digest(wanted));
}
