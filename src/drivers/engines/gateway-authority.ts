import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_kp_serverAuth,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';
import { PRODUCT } from '../../product.ts';
import type { Authority } from './pull-guard.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Margin of validity, because the clock of a guest may differ from ours. */
const SKEW_MS = DAY_MS;
/** Validity of the authority: an engine trusts the one that it was started with for as long as it runs. */
const AUTHORITY_MS = 3650 * DAY_MS;
const HOST_MS = 30 * DAY_MS;

/** OIDs: X.520 commonName; ecdsa-with-SHA256 of RFC 5758. */
const COMMON_NAME = '2.5.4.3';
const ECDSA_SHA256 = new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' });

const AUTHORITY_NAME = `${PRODUCT.name} registry gateway`;

/**
 * Creates a certificate authority (P-256). Only the engine that is started with it trusts it.
 * @param now milliseconds since 1970.
 */
export function newAuthority(now: number): Authority {
  const { publicKey, privateKey } = newKeys();
  const certificate = certify({
    subject: AUTHORITY_NAME,
    publicKey,
    authorityKey: privateKey,
    from: now - SKEW_MS,
    to: now + AUTHORITY_MS,
    extensions: [
      extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign), true),
    ],
  });
  return { certificate, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/**
 * Returns a function that makes TLS contexts that clients of the authority accept as any host. Certificates are kept per host, and renewed before
 * they expire.
 */
export function hostCertificates(authority: Authority, now: () => number): (host: string) => SecureContext {
  const { publicKey, privateKey } = newKeys();
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const known = new Map<string, { context: SecureContext; renew: number }>();
  return (host) => {
    const at = now();
    const cached = known.get(host);
    if (cached && at < cached.renew) return cached.context;
    const cert = certify({
      subject: host.slice(0, 64),
      publicKey,
      authorityKey: authority.key,
      from: at - SKEW_MS,
      to: at + HOST_MS,
      extensions: [
        extension(
          id_ce_subjectAltName,
          new SubjectAlternativeName([new GeneralName(isIP(host) ? { iPAddress: host } : { dNSName: host })]),
        ),
        extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
      ],
    });
    const context = createSecureContext({ key, cert });
    // Hosts are those of the list and of its registries' redirects; a client cannot fill the memory with others.
    known.set(host, { context, renew: at + HOST_MS / 2 });
    return context;
  };
}

function newKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

interface Request {
  subject: string;
  publicKey: KeyObject;
  /** A key, or PKCS #8 as PEM. */
  authorityKey: KeyObject | string;
  /** Milliseconds since 1970. */
  from: number;
  to: number;
  extensions: Extension[];
}

/** Issues an X.509 version 3 certificate of RFC 5280, as PEM. */
function certify({ subject, publicKey, authorityKey, from, to, extensions }: Request): string {
  const serial = randomBytes(16);
  // Positive, and of a fixed length.
  serial.writeUInt8((serial.readUInt8(0) & 0x7f) | 0x40, 0);
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: bytes(serial),
    signature: ECDSA_SHA256,
    issuer: nameOfCommon(AUTHORITY_NAME),
    validity: new Validity({ notBefore: new Date(from), notAfter: new Date(to) }),
    subject: nameOfCommon(subject),
    subjectPublicKeyInfo: AsnConvert.parse(publicKey.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo),
    extensions: new Extensions(extensions),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), authorityKey);
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: ECDSA_SHA256,
    signatureValue: bytes(signature),
  });
  const lines =
    Buffer.from(AsnConvert.serialize(certificate))
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function nameOfCommon(commonName: string): Name {
  const value = new AttributeValue({ utf8String: commonName });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

function extension(extnID: string, value: unknown, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

/** Copies to a buffer of its own: Node's may share theirs. */
function bytes(data: Buffer): ArrayBuffer {
  return new Uint8Array(data).buffer;
}
