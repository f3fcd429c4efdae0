import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  fingerprint,
  parseKey,
  RELEASE_NAMESPACE,
  verifySignature,
} from '../../../src/features/upgrade/ssh-signature.ts';
import { checkEach } from '../../helpers/check-each.ts';

// Those of the real ssh-keygen are in test/features/upgrade/ssh-keygen.integration.test.ts.

const SUMS = Buffer.from(`${'ab'.repeat(32)}  rdctl-0.2.0-linux-x64\n`);

function string(bytes: Uint8Array | string): Buffer {
  const data = Buffer.from(bytes);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  return Buffer.concat([length, data]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const armor = (bytes: Buffer) =>
  `-----BEGIN SSH SIGNATURE-----\n${bytes.toString('base64').replace(/.{1,70}/g, '$&\n')}-----END SSH SIGNATURE-----\n`;

interface Made {
  version?: number;
  namespace?: string;
  hash?: string;
  type?: string;
  tail?: string;
}

/** A signer by PROTOCOL.sshsig, which can also sign what ssh-keygen would not. */
function signer() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  const key = Buffer.concat([string('ssh-ed25519'), string(raw)]);
  function signed(of: Uint8Array, made: Made = {}): string {
    const { version = 1, namespace = RELEASE_NAMESPACE, hash = 'sha512', type = 'ssh-ed25519', tail = '' } = made;
    const digest = createHash(hash === 'sha256' ? 'sha256' : 'sha512')
      .update(of)
      .digest();
    const magic = Buffer.from('SSHSIG');
    const facts = [namespace, '', hash].map(string);
    const signature = sign(null, Buffer.concat([magic, ...facts, string(digest)]), privateKey);
    const inside = Buffer.concat([string(type), string(signature)]);
    return armor(Buffer.concat([magic, number(version), string(key), ...facts, string(inside), Buffer.from(tail)]));
  }
  return { key, signed };
}

const { key, signed } = signer();

describe('a signature', () => {
  test.each(['sha512', 'sha256'])('with %s is accepted, and its signer is named', (hash) => {
    const other = signer();
    expect(verifySignature(SUMS, signed(SUMS, { hash }), [other.key, key])).toEqual(key);
    expect(fingerprint(key)).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
  });

  const refusals: readonly [what: string, text: () => string, why: string][] = [
    ['of another key', () => signer().signed(SUMS), 'a key that is not trusted here'],
    ['for another purpose', () => signed(SUMS, { namespace: 'file' }), 'it is not for releases'],
    ['of other sums', () => signed(Buffer.concat([SUMS, SUMS])), 'it does not fit'],
    ['of a later version', () => signed(SUMS, { version: 2 }), 'it has the version 2'],
    ['with an unknown hash', () => signed(SUMS, { hash: 'sha1' }), 'its hash is "sha1"'],
    ['of a key of another type', () => signed(SUMS, { type: 'ssh-rsa' }), 'only ssh-ed25519 is supported'],
    ['with more at its end', () => signed(SUMS, { tail: 'x' }), 'it is damaged'],
    ['that is empty', () => '', 'it is not a signature of OpenSSH'],
    ['that is a web page', () => '<html></html>\n', 'it is not a signature of OpenSSH'],
    ['in lines of another system', () => signed(SUMS).replaceAll('\n', '\r\n'), 'it is not a signature of OpenSSH'],
  ];
  test.each(refusals)('%s is refused', (_, text, why) => {
    expect(() => verifySignature(SUMS, text(), [key])).toThrow(why);
  });

  test('is refused when no key is trusted', () => {
    expect(() => verifySignature(SUMS, signed(SUMS), [])).toThrow('not trusted');
  });

  test('is refused with any bit of it changed, any byte missing, and cut off anywhere', async () => {
    const text = Buffer.from(signed(SUMS), 'latin1');
    const damaged: [string, Buffer][] = [];
    for (const [at, byte] of text.entries()) {
      for (let bit = 0; bit < 8; bit += 1) {
        const copy = Buffer.from(text);
        copy[at] = byte ^ (1 << bit);
        damaged.push([`bit ${bit} of byte ${at}`, copy]);
      }
      // Where lines end says nothing, as long as they do.
      if (byte === 0x0a && at > 30 && at < text.length - 30) continue;
      if (at === text.length - 1) continue;
      damaged.push([`without byte ${at}`, Buffer.concat([text.subarray(0, at), text.subarray(at + 1)])]);
      damaged.push([`cut at ${at}`, text.subarray(0, at)]);
    }
    await checkEach(damaged, (copy) => {
      expect(() => verifySignature(SUMS, copy.toString('latin1'), [key])).toThrow('invalid release signature');
    });
  });

  test('is refused with any bit of the sums changed', async () => {
    const text = signed(SUMS);
    const changed = [...SUMS].flatMap((byte, at) =>
      Array.from({ length: 8 }, (_, bit): [string, Buffer] => {
        const copy = Buffer.from(SUMS);
        copy[at] = byte ^ (1 << bit);
        return [`bit ${bit} of byte ${at}`, copy];
      }),
    );
    await checkEach(changed, (copy) => {
      expect(() => verifySignature(copy, text, [key])).toThrow('it does not fit');
    });
  });
});

test('only a whole key of the one type is a key', () => {
  expect(parseKey(key.toString('base64'))).toEqual(key);
  const others = [
    key.subarray(0, -1),
    Buffer.concat([key, Buffer.from('x')]),
    Buffer.concat([string('ssh-rsa'), string(Buffer.alloc(32))]),
    Buffer.concat([string('ssh-ed25519'), string(Buffer.alloc(31))]),
  ];
  for (const other of others) expect(parseKey(other.toString('base64'))).toBeUndefined();
  for (const text of ['', 'AAAA', `${key.toString('base64')} `]) expect(parseKey(text)).toBeUndefined();
});
