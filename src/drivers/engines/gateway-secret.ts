import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { PRODUCT } from '../../product.ts';

/** Where the gateway to registries is on the machine's 127.0.0.1, and what tells those it is for from everybody else there. */
export interface Gateway {
  port: number;
  /** Letters, digits, `-` and `_`. Stands only where root alone can read it. */
  secret: string;
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** The gateway as programs that use proxies are told about it. */
export function proxyAddress({ port, secret }: Gateway): string {
  return `http://${PRODUCT.name}:${secret}@127.0.0.1:${port}`;
}

/** Whether a request to a proxy comes from a program that was told that address. */
export function hasProxySecret(headers: IncomingHttpHeaders, secret: string): boolean {
  const login = Buffer.from(`${PRODUCT.name}:${secret}`).toString('base64');
  return same(headers['proxy-authorization'], `Basic ${login}`);
}

/**
 * What clients of a mirror send. A cookie, because they follow a registry to where its layers are, and leave cookies and passwords
 * behind then; every other header, and the address, they would show there.
 */
export function secretCookie(secret: string): string {
  return `${PRODUCT.name}-gateway=${secret}`;
}

export function hasSecretCookie(headers: IncomingHttpHeaders, secret: string): boolean {
  return same(headers.cookie, secretCookie(secret));
}

/** Takes as long for every text that is given. */
function same(given: string | undefined, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given ?? ''), digest(wanted));
}
