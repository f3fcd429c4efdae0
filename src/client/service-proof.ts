import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** The secret of a proof, and the port for which alone it is valid. */
export interface ProofKey {
  password: string;
  port: number;
}

/** Length of the nonce in bytes. */
const NONCE_BYTES = 32;
/** Domain separation: the password authenticates no other message under this name. */
const DOMAIN = 'rdctl service proof 1';

/** Returns the service's reply to a nonce, 64 hexadecimal digits, which proves knowledge of the password without revealing it. */
export function proofOf({ password, port }: ProofKey, nonce: string): string {
  return createHmac('sha256', password).update(`${DOMAIN}\n${port}\n${nonce}\n`).digest('hex');
}

/** Returns a random nonce in hexadecimal. */
export function newNonce(): string {
  return randomBytes(NONCE_BYTES).toString('hex');
}

export function isProof(key: ProofKey, nonce: string, answer: unknown): boolean {
  if (typeof answer !== 'string') return false;
  const [given, expected] = [Buffer.from(answer), Buffer.from(proofOf(key, nonce))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
