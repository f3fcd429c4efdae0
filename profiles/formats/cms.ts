import { RdError } from '../../src/errors.ts';

/** Object identifier of signed data: 1.2.840.113549.1.7.2. */
const SIGNED_DATA = Buffer.from('06092a864886f70d010702', 'hex');
/** Object identifier of encrypted data: 1.2.840.113549.1.7.3. */
const ENVELOPED_DATA = Buffer.from('06092a864886f70d010703', 'hex');
/** Object identifier of plain data: 1.2.840.113549.1.7.1. */
const DATA = Buffer.from('06092a864886f70d010701', 'hex');
const SEQUENCE = 0x30;
const SET = 0x31;
const CONTEXT_0 = 0xa0;
const INTEGER = 0x02;
const OCTETS = 0x04;
const CONSTRUCTED_OCTETS = 0x24;
const MAX_PIECES = 100_000;

/** True for a signed or encrypted message (CMS, RFC 5652) in binary form (DER), the only form that macOS installs. */
export function isSigned(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.subarray(0, 64));
  return head[0] === SEQUENCE && [SIGNED_DATA, ENVELOPED_DATA].some((kind) => isOf(head, kind));
}

function isOf(message: Buffer, kind: Buffer): boolean {
  return message.subarray(0, 32).includes(kind);
}

/**
 * The signed content; the signature is not verified. ASN.1 libraries (`asn1js`, `node-forge`) are far larger than this code, which reads
 * one octet string.
 * @throws RdError `ERR_PROFILE_INVALID` for an encrypted message, and for one more complex than signed profiles are, with the command that
 *   extracts the content.
 */
export function signedContent(bytes: Uint8Array, label: string): Uint8Array {
  const message = Buffer.from(bytes);
  if (isOf(message, ENVELOPED_DATA)) {
    throw new RdError('ERR_PROFILE_INVALID', `${label} is encrypted, and only its recipient can read it`, {
      advice: 'Get an unencrypted copy of the profile.',
    });
  }
  const content = contentOf(message);
  if (content !== undefined) return content;
  throw new RdError('ERR_PROFILE_INVALID', `${label} is signed, and the signed content could not be extracted`, {
    advice: 'Extract it with: openssl cms -verify -noverify -nosigs -inform DER -in FILE -out plain.mobileconfig',
  });
}

/** One element: its content, and where the next one begins. An element without a length (`undefined`) ends at an end mark. */
interface Element {
  tag: number;
  start: number;
  end: number | undefined;
}

function contentOf(data: Buffer): Buffer | undefined {
  try {
    const signed = into(data, 0, SEQUENCE);
    const explicit = into(data, after(data, signed.start, SIGNED_DATA), CONTEXT_0);
    const inner = into(data, explicit.start, SEQUENCE);
    const digests = past(data, inner.start, INTEGER);
    const encapsulated = into(data, past(data, digests, SET), SEQUENCE);
    const content = into(data, after(data, encapsulated.start, DATA), CONTEXT_0);
    return octets(data, elementAt(data, content.start));
  } catch {
    return undefined;
  }
}

function octets(data: Buffer, element: Element): Buffer {
  if (element.tag === OCTETS && element.end !== undefined) return data.subarray(element.start, element.end);
  if (element.tag !== CONSTRUCTED_OCTETS) throw new Error('not octets');
  const pieces: Buffer[] = [];
  for (let at = element.start; element.end === undefined ? !isEnd(data, at) : at < element.end; ) {
    const piece = elementAt(data, at);
    if (piece.tag !== OCTETS || piece.end === undefined || pieces.length >= MAX_PIECES) throw new Error('not a piece');
    pieces.push(data.subarray(piece.start, piece.end));
    at = piece.end;
  }
  return Buffer.concat(pieces);
}

function into(data: Buffer, at: number, tag: number): Element {
  const element = elementAt(data, at);
  if (element.tag !== tag) throw new Error('another element');
  return element;
}

function past(data: Buffer, at: number, tag: number): number {
  const { end } = into(data, at, tag);
  if (end === undefined) throw new Error('no length');
  return end;
}

function after(data: Buffer, at: number, bytes: Buffer): number {
  if (!data.subarray(at, at + bytes.length).equals(bytes)) throw new Error('another kind of content');
  return at + bytes.length;
}

/** Reads the element at an offset. @throws RangeError beyond the end of the data. */
function elementAt(data: Buffer, at: number): Element {
  const tag = data.readUInt8(at);
  const short = data.readUInt8(at + 1);
  if (short < 0x80) return boundedContent(data, { tag, start: at + 2, end: at + 2 + short });
  if (short === 0x80) return { tag, start: at + 2, end: undefined };
  const width = short & 0x7f;
  if (width > 4) throw new RangeError('length');
  const start = at + 2 + width;
  return boundedContent(data, { tag, start, end: start + data.readUIntBE(at + 2, width) });
}

function boundedContent(data: Buffer, element: Element & { end: number }): Element {
  if (element.end > data.length) throw new RangeError('length');
  return element;
}

function isEnd(data: Buffer, at: number): boolean {
  return data.readUInt16BE(at) === 0;
}
