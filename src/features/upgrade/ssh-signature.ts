import { createHash, createPublicKey, verify } from 'node:crypto';
import { RdError } from '../../errors.ts';

// Signatures in the format of `ssh-keygen -Y sign`: PROTOCOL.sshsig of OpenSSH.

/** Namespace of release signatures: a signature of anything else made with the same key does not count. `release/` signs with it. */
export const RELEASE_NAMESPACE = 'rdctl-release';

export const KEY_TYPE = 'ssh-ed25519';

const ARMOR = /^-----BEGIN SSH SIGNATURE-----\n((?:[A-Za-z0-9+/=]+\n)+)-----END SSH SIGNATURE-----\n?$/;
const MAGIC = Buffer.from('SSHSIG');
const VERSION = 1;
const HASHES: readonly string[] = ['sha512', 'sha256'];
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** The key of a signer, in the decoded form of `id_ed25519.pub`. */
export type PublicKey = Buffer;

/**
 * Verifies a signature of a release.
 * @param signed the bytes that were signed.
 * @param armored text of the signature.
 * @param trusted the keys that may have made it.
 * @returns the key that made it.
 * @throws RdError `ERR_UPGRADE_REFUSED` with the reason.
 */
export function verifySignature(signed: Uint8Array, armored: string, trusted: readonly PublicKey[]): PublicKey {
  const { key, namespace, reserved, hash, signature } = parseSignature(armored);
  const signer = trusted.find((each) => each.equals(key));
  if (!signer) throw refusalError(`it was made with ${fingerprint(key)}, a key that is not trusted here`);
  if (namespace !== RELEASE_NAMESPACE) {
    throw refusalError(
      `it is not for releases: its namespace is ${JSON.stringify(namespace)}, not ${RELEASE_NAMESPACE}`,
    );
  }
  const digest = createHash(hash).update(signed).digest();
  const statement = [Buffer.from(namespace), reserved, Buffer.from(hash), digest].map(prefixLength);
  if (!verify(null, Buffer.concat([MAGIC, ...statement]), nodeKey(signer), signature)) {
    throw refusalError('it does not fit: the sums were changed after they were signed');
  }
  return signer;
}

/** Returns the fingerprint of a key, `SHA256:…`, in the format of `ssh-keygen -l`. */
export function fingerprint(key: PublicKey): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
}

/**
 * Parses the key of a line such as `ssh-ed25519 AAAA…`.
 * @returns undefined for any other text.
 */
export function parseKey(base64: string): PublicKey | undefined {
  const bytes = fromBase64(base64);
  const fields = bytes && reader(bytes);
  const isKey = fields?.string()?.toString() === KEY_TYPE && fields.string()?.length === KEY_BYTES && fields.atEnd();
  return isKey ? bytes : undefined;
}

interface Parsed {
  key: Buffer;
  namespace: string;
  reserved: Buffer;
  hash: string;
  signature: Buffer;
}

/** Parses a signature. Accepts one form of each, apart from its line breaks, so that no changed byte is overlooked. */
function parseSignature(armored: string): Parsed {
  const bytes = fromBase64(ARMOR.exec(armored)?.[1]?.replaceAll('\n', '') ?? '');
  if (!bytes?.subarray(0, MAGIC.length).equals(MAGIC)) throw refusalError('it is not a signature of OpenSSH');
  const fields = reader(bytes.subarray(MAGIC.length));
  const version = fields.number();
  if (version !== VERSION) throw refusalError(`it has the version ${version}, and this rdctl knows ${VERSION}`);
  const key = fields.string();
  const namespace = fields.string()?.toString('latin1');
  const reserved = fields.string();
  const hash = fields.string()?.toString('latin1');
  const made = fields.string();
  if (!key || namespace === undefined || !reserved || hash === undefined || !made || !fields.atEnd()) {
    throw refusalError('it is damaged');
  }
  const inside = reader(made);
  const type = inside.string()?.toString('latin1');
  if (type !== KEY_TYPE) {
    throw refusalError(
      `it was made with a key of the type ${JSON.stringify(type ?? '')}, and only ${KEY_TYPE} is supported`,
    );
  }
  const signature = inside.string();
  if (signature?.length !== SIGNATURE_BYTES || !inside.atEnd()) throw refusalError('it is damaged');
  if (!HASHES.includes(hash)) throw refusalError(`its hash is ${JSON.stringify(hash)}, not ${HASHES.join(' or ')}`);
  return { key, namespace, reserved, hash, signature };
}

/** Creates a reader of the wire format of RFC 4251: 32-bit numbers, and strings after their length. */
function reader(bytes: Buffer) {
  let at = 0;
  function take(length: number): Buffer | undefined {
    if (at + length > bytes.length) return undefined;
    at += length;
    return bytes.subarray(at - length, at);
  }
  const number = () => take(4)?.readUInt32BE();
  return {
    number,
    string(): Buffer | undefined {
      const length = number();
      return length === undefined ? undefined : take(length);
    },
    atEnd: () => at === bytes.length,
  };
}

function prefixLength(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Decodes base64 strictly. Node skips invalid characters and ignores unused bits; here both are errors. */
function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return text !== '' && bytes.toString('base64') === text ? bytes : undefined;
}

function nodeKey(key: PublicKey) {
  const x = key.subarray(-KEY_BYTES).toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

function refusalError(why: string): RdError {
  return new RdError('ERR_UPGRADE_REFUSED', `invalid release signature: ${why}`, {
    advice: 'Nothing was changed. Get the release and the key from its publisher again, and compare.',
  });
}
