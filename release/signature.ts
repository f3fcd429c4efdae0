import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { KEY_TYPE, RELEASE_NAMESPACE } from '../src/features/upgrade/ssh-signature.ts';

/**
 * Signs a file with ssh-keygen, and checks the signature. The result lies beside it, as `FILE.sig`.
 * @param key path of an OpenSSH private key; ssh-keygen asks for its passphrase, or an agent has it
 * @throws Error when the key cannot be read, or others can read it.
 */
export function sign(file: string, key: string): string {
  checkKey(key);
  const signature = `${file}.sig`;
  // It would ask whether to write over one of an earlier build.
  rmSync(signature, { force: true });
  execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', key, '-n', RELEASE_NAMESPACE, file], {
    stdio: ['inherit', 'ignore', 'inherit'],
  });
  execFileSync('ssh-keygen', ['-q', '-Y', 'check-novalidate', '-n', RELEASE_NAMESPACE, '-s', signature], {
    input: readFileSync(file),
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  return signature;
}

/**
 * The public half of a key, as a line of allowed signers.
 * @throws Error as `sign`, and for a key that `rdctl upgrade` does not know.
 */
export function signerLine(key: string): string {
  checkKey(key);
  const [type, base64] = publicHalf(key).trim().split(' ');
  if (type !== KEY_TYPE) {
    throw new Error(`RDCTL_SIGNING_KEY: ${key} is of the type ${type}, and rdctl upgrade accepts only ${KEY_TYPE}`);
  }
  return `release ${type} ${base64}`;
}

/** Without asking for a passphrase where that is not needed. */
function publicHalf(key: string): string {
  const text = readFileSync(key, 'utf8');
  // The private half is with an agent.
  if (/^[a-z-]+ AAAA/.test(text)) return text;
  if (existsSync(`${key}.pub`)) return readFileSync(`${key}.pub`, 'utf8');
  return execFileSync('ssh-keygen', ['-y', '-f', key], { encoding: 'utf8', stdio: ['inherit', 'pipe', 'inherit'] });
}

function checkKey(key: string): void {
  const facts = statSync(key, { throwIfNoEntry: false });
  if (!facts?.isFile()) throw new Error(`RDCTL_SIGNING_KEY: there is no file ${key}`);
  if (process.platform !== 'win32' && (facts.mode & 0o077) !== 0) {
    throw new Error(`RDCTL_SIGNING_KEY: others may read ${key}; run chmod 600 on it`);
  }
}
