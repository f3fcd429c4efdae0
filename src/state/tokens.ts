import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { isObject } from '../json.ts';
import { createFileAtomic, fileOperations } from '../os/atomic-file.ts';
import { makeDirectory } from '../os/directory.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { readRecord } from '../os/record.ts';
import { PRODUCT } from '../product.ts';

/**
 * The tokens of a home, one file each, named after the token: creating one cannot overwrite another, and removing the file revokes it for
 * every later request. A file holds the SHA-256 of the token and never the token itself. A fast hash is enough, because nobody can guess
 * 256 random bits; slow ones protect passwords that people choose.
 */

/** The permissions of a token; each scope includes the ones before. */
export const TOKEN_SCOPES = ['read', 'plan', 'write'] as const;
export type TokenScope = (typeof TOKEN_SCOPES)[number];

/** A token without its secret. */
export interface TokenRecord {
  name: string;
  scope: TokenScope;
  /** RFC 3339. */
  createdAt: string;
  /** RFC 3339; absent if it never expires. */
  expiresAt?: string;
}

/** The result of checking a token that a client presented. */
export type TokenCheck =
  | ({ kind: 'valid' } & Pick<TokenRecord, 'name' | 'scope'>)
  /** `malformed`: not a token of ours. `unknown`: never created, revoked, or wrong. */
  | { kind: 'malformed' }
  | { kind: 'unknown' | 'unreadable'; name: string }
  | { kind: 'expired'; name: string; expiresAt: string };

/** Prefix by which a leaked token is recognized, also by secret scanners. */
const PREFIX = `${PRODUCT.name}_`;
/** No underscore, because it ends the name within a token. */
const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/;
const TOKEN = new RegExp(`^${PREFIX}([a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?)_[A-Za-z0-9_-]{43}$`);
const SUFFIX = '.json';

/** Throws `ERR_USAGE` for anything but lowercase letters, digits, dots and hyphens. */
export function checkTokenName(name: string): void {
  if (NAME.test(name)) return;
  throw new RdError('ERR_USAGE', `${JSON.stringify(name)} cannot be the name of a token`, {
    advice: 'Use up to 63 lowercase letters, digits, dots and hyphens, such as ci-bot.',
  });
}

/**
 * Creates a token.
 * @returns the token, which cannot be read again.
 * @throws RdError `ERR_USAGE` for an invalid name, `ERR_IO` for one that is in use.
 */
export async function createToken(directory: string, record: TokenRecord): Promise<string> {
  const { name } = record;
  checkTokenName(name);
  const token = `${PREFIX}${name}_${randomBytes(32).toString('base64url')}`;
  const path = fileOf(directory, name);
  await makeDirectory(directory);
  try {
    await createFileAtomic(path, `${JSON.stringify({ ...record, sha256: digestOf(token) }, null, 2)}\n`);
  } catch (cause) {
    if (systemCode(cause) !== 'EEXIST') throw ioError('create', path, cause);
    throw new RdError('ERR_IO', `there is a token with the name "${name}" already`, {
      cause,
      advice: `Choose another name, or revoke that one first: rdctl token revoke ${name}`,
    });
  }
  return token;
}

/** Returns all tokens by name, including expired ones. A damaged file has no record and gives access to nothing. Throws `ERR_IO`. */
export async function listTokens(directory: string): Promise<{ name: string; record?: TokenRecord }[]> {
  const names = await readdir(directory).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return [];
    throw ioError('read', directory, cause);
  });
  const tokens = names.filter((file) => file.endsWith(SUFFIX)).map((file) => file.slice(0, -SUFFIX.length));
  return Promise.all(
    tokens
      .filter((name) => NAME.test(name))
      .sort()
      .map(async (name) => {
        const stored = await readStored(directory, name);
        if (!stored) return { name };
        const { sha256: _, ...record } = stored;
        return { name, record };
      }),
  );
}

/** Revokes a token. Returns false if there is none with that name. Throws `ERR_USAGE`, `ERR_IO`. */
export async function revokeToken(directory: string, name: string): Promise<boolean> {
  checkTokenName(name);
  const path = fileOf(directory, name);
  try {
    await unlink(path);
    await fileOperations.syncDirectory(directory);
    return true;
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return false;
    throw ioError('remove', path, cause);
  }
}

/**
 * Checks a token that a client presented against its file at this moment. Never throws.
 * @param now milliseconds since the epoch.
 */
export async function checkToken(directory: string, presented: string, now: number): Promise<TokenCheck> {
  const name = TOKEN.exec(presented)?.[1];
  if (name === undefined) return { kind: 'malformed' };
  const stored = await readStored(directory, name).catch(() => 'unreadable' as const);
  if (stored === 'unreadable') return { kind: 'unreadable', name };
  const digest = Buffer.from(digestOf(presented), 'hex');
  if (!stored || !timingSafeEqual(digest, Buffer.from(stored.sha256, 'hex'))) return { kind: 'unknown', name };
  const { scope, expiresAt } = stored;
  if (expiresAt !== undefined && !(now < Date.parse(expiresAt))) return { kind: 'expired', name, expiresAt };
  return { kind: 'valid', name, scope };
}

function fileOf(directory: string, name: string): string {
  return join(directory, `${name}${SUFFIX}`);
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Reads the file of a token. Undefined if it is missing or damaged. Throws `ERR_IO`. */
async function readStored(directory: string, name: string): Promise<(TokenRecord & { sha256: string }) | undefined> {
  const value: unknown = await readRecord(fileOf(directory, name));
  if (!isObject(value)) return undefined;
  const { scope: word, createdAt, expiresAt, sha256 } = value;
  const scope = TOKEN_SCOPES.find((each) => each === word);
  if (!scope || value.name !== name || typeof createdAt !== 'string') return undefined;
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  if (expiresAt === undefined) return { name, scope, createdAt, sha256 };
  return typeof expiresAt === 'string' ? { name, scope, createdAt, expiresAt, sha256 } : undefined;
}
