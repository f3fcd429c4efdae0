import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** What only the two of them know, and where the service listens: a proof for one port is none for another. */
export interface ProofKey {
  password: string;
  port: number;
}

/** Random bytes that a proof is asked for; 32 of them. */
const NONCE_BYTES = 32;
/** Nothing else is ever authenticated with the password under this name. */
const DOMAIN = 'rdctl service proof 1';

/**
 * What a service answers to a nonce: it shows that it knows the password without telling it.
 * @returns 64 hexadecimal digits.
 */
export function proofOf({ password, port }: ProofKey, nonce: string): string {
  return createHmac('sha256', password).update(`${DOMAIN}\n${port}\n${nonce}\n`).digest('hex');
}

/** A nonce that was never used, in hexadecimal digits. */
export function newNonce(): string {
  return randomBytes(NONCE_BYTES).toString('hex');
}

export function isProof(key: ProofKey, nonce: string, answer: unknown): boolean {
  if (typeof answer !== 'string') return false;
  const [given, expected] = [Buffer.from(answer), Buffer.from(proofOf(key, nonce))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
