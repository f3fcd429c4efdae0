import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** The shared secret, and the port, which makes a proof valid for one port only. */
export interface ProofKey {
  password: string;
  port: number;
}

/** Length of the nonce in bytes. */
const NONCE_BYTES = 32;
/** Domain separation: no other message is authenticated with the password under this name. */
const DOMAIN = 'rdctl service proof 1';

/**
 * The service's reply to a nonce, proving knowledge of the password without revealing it.
 * @returns 64 hexadecimal digits.
 */
export function proofOf({ password, port }: ProofKey, nonce: string): string {
  return createHmac('sha256', password).update(`${DOMAIN}\n${port}\n${nonce}\n`).digest('hex');
}

/** A random nonce in hexadecimal. */
export function newNonce(): string {
  return randomBytes(NONCE_BYTES).toString('hex');
}

export function isProof(key: ProofKey, nonce: string, answer: unknown): boolean {
  if (typeof answer !== 'string') return false;
  const [given, expected] = [Buffer.from(answer), Buffer.from(proofOf(key, nonce))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
