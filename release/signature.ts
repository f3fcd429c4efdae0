import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, statSync } from 'node:fs';

/** What a signature is for: a signature of anything else made with the same key does not count. */
const NAMESPACE = 'rdctl-release';

/**
 * Signs a file with ssh-keygen, and checks the signature. The result lies beside it, as `FILE.sig`.
 * @param key path of an OpenSSH private key; ssh-keygen asks for its passphrase, or an agent has it
 * @throws Error when the key cannot be read, or others can read it.
 */
export function sign(file: string, key: string): string {
  const facts = statSync(key, { throwIfNoEntry: false });
  if (!facts?.isFile()) throw new Error(`RDCTL_SIGNING_KEY: there is no file ${key}`);
  if (process.platform !== 'win32' && (facts.mode & 0o077) !== 0) {
    throw new Error(`RDCTL_SIGNING_KEY: others may read ${key}; run chmod 600 on it`);
  }
  const signature = `${file}.sig`;
  // It would ask whether to write over one of an earlier build.
  rmSync(signature, { force: true });
  execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', key, '-n', NAMESPACE, file], {
    stdio: ['inherit', 'ignore', 'inherit'],
  });
  execFileSync('ssh-keygen', ['-q', '-Y', 'check-novalidate', '-n', NAMESPACE, '-s', signature], {
    input: readFileSync(file),
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  return signature;
}
