import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sign, signerLine } from '../../release/signature.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

function stage() {
  const folder = temporaryDirectory();
  const key = join(folder, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', key]);
  const file = join(folder, 'SHA256SUMS');
  writeFileSync(file, 'sums\n');
  const signers = join(folder, 'allowed-signers');
  writeFileSync(signers, `release ${readFileSync(`${key}.pub`, 'utf8')}`);
  /** As the document tells users to. */
  const verify = (text: string) =>
    execFileSync(
      'ssh-keygen',
      ['-Y', 'verify', '-f', signers, '-I', 'release', '-n', 'rdctl-release', '-s', `${file}.sig`],
      { input: text, stdio: ['pipe', 'ignore', 'ignore'] },
    );
  return { key, file, verify };
}

test('ssh-keygen accepts the signature, of these bytes only', () => {
  const { key, file, verify } = stage();
  expect(sign(file, key)).toBe(`${file}.sig`);
  verify('sums\n');
  expect(() => verify('Sums\n')).toThrow();
  const first = readFileSync(`${file}.sig`, 'utf8');
  // A second build signs again, with the same bytes.
  sign(file, key);
  expect(readFileSync(`${file}.sig`, 'utf8')).toBe(first);
});

test('a key that is missing, or that others can read, is refused', () => {
  const { key, file } = stage();
  expect(() => sign(file, `${key}-none`)).toThrow('there is no file');
  chmodSync(key, 0o644);
  expect(() => sign(file, key)).toThrow(`others may read ${key}`);
});

test('the public half is a line of allowed signers, and only of a key that upgrades accept', () => {
  const { key } = stage();
  const [type, base64] = readFileSync(`${key}.pub`, 'utf8').trim().split(' ');
  expect(signerLine(key)).toBe(`release ${type} ${base64}`);
  rmSync(`${key}.pub`);
  expect(signerLine(key)).toBe(`release ${type} ${base64}`);
  execFileSync('ssh-keygen', ['-q', '-t', 'ecdsa', '-N', '', '-f', `${key}-ecdsa`]);
  expect(() => signerLine(`${key}-ecdsa`)).toThrow('rdctl upgrade accepts only ssh-ed25519');
});
