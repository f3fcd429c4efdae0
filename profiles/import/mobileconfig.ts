import { RdError } from '../../src/errors.ts';
import { isDictionary, type PlistDictionary, type PlistValue } from '../../src/policies/plist-value.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { PARTS, type Part } from '../deployment/part.ts';
import type { ImportedPart, Importer, Loss } from './importer.ts';
import { isPlist, plistOf, settingsOf } from './plist.ts';
import { isSigned, signedContent } from './signed.ts';

/** Payload that carries preferences of any domain. */
const PREFERENCES = 'com.apple.ManagedClient.preferences';
const SETTINGS = 'mcx_preference_settings';

/**
 * A configuration profile of Apple, plain or signed. Settings are in payloads of two styles: one that carries the preferences
 * of several domains, and one whose type is the domain itself.
 */
export const mobileconfigImporter: Importer = {
  name: 'mobileconfig',
  platform: 'darwin',
  recognises: (bytes) => isSigned(bytes) || (isPlist(bytes) && isConfiguration(bytes)),
  async read(bytes, label) {
    const signed = isSigned(bytes);
    const value = await plistOf(signed ? signedContent(bytes, label) : bytes, label);
    const parts = partsOf(value, label);
    const notes = signed ? [`${label} is signed; its signature was not checked.`] : [];
    return parts.map((part, index) => (index === 0 ? { ...part, notes } : part));
  },
};

/** Both words are plain letters in XML and in the binary form. */
function isConfiguration(bytes: Uint8Array): boolean {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return ['PayloadContent', 'PayloadUUID', 'PayloadType'].every((word) => data.includes(word));
}

function partsOf(value: PlistValue, label: string): ImportedPart[] {
  if (!isDictionary(value)) throw notUnderstood(label, 'it does not hold a dictionary');
  if (value.has('EncryptedPayloadContent')) throw notUnderstood(label, 'its payloads are encrypted for one device');
  const payloads = value.get('PayloadContent');
  if (!Array.isArray(payloads)) throw notUnderstood(label, 'it has no list PayloadContent');
  const lost: Loss[] = [];
  const parts = payloads
    .flatMap((payload: PlistValue, index) => readPayload(payload, `PayloadContent.${index}`, label, lost))
    .sort((a, b) => PARTS.indexOf(a.part) - PARTS.indexOf(b.part));
  const [first, ...rest] = parts;
  if (!first) {
    const domains = PARTS.map(domainOf).join(' or ');
    throw notUnderstood(label, `it has no payload for ${domains}`);
  }
  return [{ ...first, lost: [...first.lost, ...lost] }, ...rest];
}

type Found = ImportedPart & { part: Part };

function readPayload(payload: PlistValue, place: string, label: string, lost: Loss[]): Found[] {
  if (!isDictionary(payload)) throw notUnderstood(label, `${place} is not a dictionary`);
  const type = payload.get('PayloadType');
  if (typeof type !== 'string') throw notUnderstood(label, `${place} has no PayloadType`);
  const part = partOf(type);
  if (part) return [ofDomain(payload, { part, place, label })];
  if (type === PREFERENCES) return ofPreferences(payload, place, label, lost);
  lost.push({ place: `${place} (${type})`, reason: 'the payload is for something else', outside: true });
  return [];
}

/** Names that begin with `Payload` describe the payload. */
function ofDomain(
  payload: PlistDictionary,
  { part, place, label }: { part: Part; place: string; label: string },
): Found {
  const settings = new Map([...payload].filter(([name]) => !name.startsWith('Payload')));
  return { part, source: `${label} (${place})`, ...settingsOf(settings) };
}

function ofPreferences(payload: PlistDictionary, place: string, label: string, lost: Loss[]): Found[] {
  const content = payload.get('PayloadContent');
  if (!isDictionary(content)) throw notUnderstood(label, `${place} has no dictionary PayloadContent`);
  return [...content].flatMap(([domain, ways]) => {
    const part = partOf(domain);
    const here = `${place}.PayloadContent.${domain}`;
    if (!part) {
      lost.push({ place: here, reason: 'the preferences are those of something else', outside: true });
      return [];
    }
    if (!isDictionary(ways)) throw notUnderstood(label, `${here} is not a dictionary`);
    return [...ways].flatMap(([way, entries]) => ofWay(entries, { part, place: `${here}.${way}`, label }));
  });
}

/** `Forced` and `Set-Once` have lists of entries; an entry also says when it was written. */
function ofWay(entries: PlistValue, { part, place, label }: { part: Part; place: string; label: string }): Found[] {
  if (!Array.isArray(entries)) throw notUnderstood(label, `${place} is not a list`);
  return entries.map((entry: PlistValue, index) => {
    const settings = isDictionary(entry) ? entry.get(SETTINGS) : undefined;
    if (!isDictionary(settings)) throw notUnderstood(label, `${place}.${index} has no dictionary ${SETTINGS}`);
    return { part, source: `${label} (${place}.${index})`, ...settingsOf(settings) };
  });
}

function notUnderstood(label: string, reason: string): RdError {
  return new RdError('ERR_PROFILE_INVALID', `${label} is not a configuration profile that can be read: ${reason}`, {
    advice: 'Take it from the management software again, not encrypted.',
  });
}

function partOf(domain: string): Part | undefined {
  return PARTS.find((part) => domainOf(part) === domain);
}

function domainOf(part: Part): string {
  return `${COMPATIBLE.policyDomain}.${part}`;
}
