import { RdError } from '../../errors.ts';
import type { ReleaseSource } from './source.ts';
import { fingerprint, type PublicKey, verifySignature } from './ssh-signature.ts';
import { fileInSums, isVersion, type ReleaseFile } from './sums.ts';

/** A release with a valid signature. */
export interface Release extends ReleaseFile {
  /** Fingerprint of the key that signed it: `SHA256:…`. */
  signer: string;
}

/** Maximum bytes of `latest`. */
const LATEST_LIMIT = 256;
const SUMS_LIMIT = 256 * 1024;
const SIGNATURE_LIMIT = 16 * 1024;

/**
 * Finds a release and verifies it. `BASE/latest` is not signed: whoever could change it could just as well replay an old signed index, so it only
 * says where to look. The release found there must be signed, and must have the version under which it was found.
 * @param version the requested version; by default the latest.
 * @throws RdError `ERR_UPGRADE_REFUSED` for an invalid release, otherwise the errors of the source.
 */
export async function findRelease(
  source: ReleaseSource,
  keys: readonly PublicKey[],
  suffix: string,
  version: string | undefined,
): Promise<Release> {
  const wanted = version ?? (await latestOf(source));
  const missing = (error: unknown) => {
    if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
    throw new RdError('ERR_NOT_FOUND', `there is no signed release ${wanted} at ${source.name}: ${error.message}`, {
      cause: error,
      advice: 'A release has SHA256SUMS and SHA256SUMS.sig in a directory of its own.',
    });
  };
  const sums = await source.text([wanted, 'SHA256SUMS'], SUMS_LIMIT).catch(missing);
  const signature = await source.text([wanted, 'SHA256SUMS.sig'], SIGNATURE_LIMIT).catch(missing);
  const signer = verifySignature(Buffer.from(sums), signature, keys);
  return { ...fileInSums(sums, suffix, wanted), signer: fingerprint(signer) };
}

async function latestOf(source: ReleaseSource): Promise<string> {
  const text = await source.text(['latest'], LATEST_LIMIT).catch((error: unknown) => {
    if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
    throw new RdError('ERR_NOT_FOUND', `there are no releases at ${source.name}: ${error.message}`, {
      cause: error,
      advice: 'Check the address, or choose a release with --version.',
    });
  });
  const version = text.trim();
  if (isVersion(version)) return version;
  throw new RdError('ERR_UPGRADE_REFUSED', `the file latest at ${source.name} does not name a version`, {
    details: [JSON.stringify(version)],
    advice: 'Check the address, or choose a release with --version.',
  });
}
