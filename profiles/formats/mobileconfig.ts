import { createHash } from 'node:crypto';
import { RdError } from '../../src/errors.ts';
import { COMPATIBLE, PRODUCT } from '../../src/product.ts';
import { isSigned, signedContent } from './cms.ts';
import {
  collectingRefusals,
  type Exporter,
  type ImportedPart,
  type Importer,
  type Loss,
  PARTS,
  type Part,
} from './format.ts';
import { isPlist, PLIST_HEADER, plistDictionary, plistOf, settingsOf } from './plist.ts';
import { isDictionary, type PlistDictionary, type PlistValue } from './plist-xml.ts';
import type { DeploymentTree } from './tree.ts';

/** Type of a payload with preferences of any domain. */
const PREFERENCES = 'com.apple.ManagedClient.preferences';
const SETTINGS = 'mcx_preference_settings';

/**
 * Reads an Apple configuration profile, plain or signed. Two kinds of payloads contain settings: one with the preferences of several domains, and one
 * whose type is the domain itself.
 */
export const mobileconfigImporter: Importer = {
  name: 'mobileconfig',
  platform: 'darwin',
  recognizes: (bytes) => isSigned(bytes) || (isPlist(bytes) && isConfiguration(bytes)),
  async read(bytes, label) {
    const signed = isSigned(bytes);
    const value = await plistOf(signed ? signedContent(bytes, label) : bytes, label);
    const parts = partsOf(value, label);
    const notes = signed ? [`${label} is signed; its signature was not checked.`] : [];
    return parts.map((part, index) => (index === 0 ? { ...part, notes } : part));
  },
};

/** Whether the bytes look like a configuration profile: its words are plain ASCII in both the XML and the binary form. */
function isConfiguration(bytes: Uint8Array): boolean {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return ['PayloadContent', 'PayloadUUID', 'PayloadType'].every((word) => data.includes(word));
}

function partsOf(value: PlistValue, label: string): ImportedPart[] {
  if (!isDictionary(value)) throw invalidMobileconfig(label, 'it does not contain a dictionary');
  if (value.has('EncryptedPayloadContent'))
    throw invalidMobileconfig(label, 'its payloads are encrypted for one device');
  const payloads = value.get('PayloadContent');
  if (!Array.isArray(payloads)) throw invalidMobileconfig(label, 'it has no list PayloadContent');
  const lost: Loss[] = [];
  const parts = payloads
    .flatMap((payload: PlistValue, index) => readPayload(payload, `PayloadContent.${index}`, label, lost))
    .sort((a, b) => PARTS.indexOf(a.part) - PARTS.indexOf(b.part));
  const [first, ...rest] = parts;
  if (!first) {
    const domains = PARTS.map(domainOf).join(' or ');
    throw invalidMobileconfig(label, `it has no payload for ${domains}`);
  }
  return [{ ...first, lost: [...first.lost, ...lost] }, ...rest];
}

type NamedPart = ImportedPart & { part: Part };

function readPayload(payload: PlistValue, place: string, label: string, lost: Loss[]): NamedPart[] {
  if (!isDictionary(payload)) throw invalidMobileconfig(label, `${place} is not a dictionary`);
  const type = payload.get('PayloadType');
  if (typeof type !== 'string') throw invalidMobileconfig(label, `${place} has no PayloadType`);
  const part = partOf(type);
  if (part) return [readDomainPayload(payload, { part, place, label })];
  if (type === PREFERENCES) return readPreferencesPayload(payload, place, label, lost);
  lost.push({ place: `${place} (${type})`, reason: 'the payload is for another application', outside: true });
  return [];
}

/** Reads the settings in a payload of the domain's own type. Names that begin with `Payload` describe the payload itself. */
function readDomainPayload(
  payload: PlistDictionary,
  { part, place, label }: { part: Part; place: string; label: string },
): NamedPart {
  const settings = new Map([...payload].filter(([name]) => !name.startsWith('Payload')));
  return { part, source: `${label} (${place})`, ...settingsOf(settings) };
}

function readPreferencesPayload(payload: PlistDictionary, place: string, label: string, lost: Loss[]): NamedPart[] {
  const content = payload.get('PayloadContent');
  if (!isDictionary(content)) throw invalidMobileconfig(label, `${place} has no dictionary PayloadContent`);
  return [...content].flatMap(([domain, modes]) => {
    const part = partOf(domain);
    const domainPlace = `${place}.PayloadContent.${domain}`;
    if (!part) {
      lost.push({ place: domainPlace, reason: 'the preferences belong to another application', outside: true });
      return [];
    }
    if (!isDictionary(modes)) throw invalidMobileconfig(label, `${domainPlace} is not a dictionary`);
    return [...modes].flatMap(([mode, entries]) =>
      readEntries(entries, { part, place: `${domainPlace}.${mode}`, label }),
    );
  });
}

/** Reads the entries of `Forced` and `Set-Once`; an entry also says when it was written. */
function readEntries(
  entries: PlistValue,
  { part, place, label }: { part: Part; place: string; label: string },
): NamedPart[] {
  if (!Array.isArray(entries)) throw invalidMobileconfig(label, `${place} is not a list`);
  return entries.map((entry: PlistValue, index) => {
    const settings = isDictionary(entry) ? entry.get(SETTINGS) : undefined;
    if (!isDictionary(settings)) throw invalidMobileconfig(label, `${place}.${index} has no dictionary ${SETTINGS}`);
    return { part, source: `${label} (${place}.${index})`, ...settingsOf(settings) };
  });
}

function invalidMobileconfig(label: string, reason: string): RdError {
  return new RdError('ERR_PROFILE_INVALID', `${label} is not a configuration profile that can be read: ${reason}`, {
    advice: 'Export it from the management software again, without encryption.',
  });
}

function partOf(domain: string): Part | undefined {
  return PARTS.find((part) => domainOf(part) === domain);
}

function domainOf(part: Part): string {
  return `${COMPATIBLE.policyDomain}.${part}`;
}

/** Namespace of all UUIDs in our configuration profiles. Must never change, because that would change the identity of existing profiles. */
const NAMESPACE = 'e9a4cbd9-903e-4816-82ef-a6cda6107599';
const NO_UUID = '00000000-0000-0000-0000-000000000000';

interface Uuids {
  profile: string;
  payload: string;
}

/**
 * A deployment profile as an Apple configuration profile. Its only payload has the type `com.apple.ManagedClient.preferences`, which
 * contains the settings of a preference domain and nothing else (`ManagedPreferences` in Apple's device management reference: domain,
 * `Forced`, `mcx_preference_settings`); a payload of the domain's own type would mix its `Payload…` keys with the settings. macOS stores
 * forced preferences of the computer in `/Library/Managed Preferences/DOMAIN.plist`, where the application looks first. Not tested on macOS.
 *
 * The output is deterministic, including the UUIDs. Different settings get different UUIDs under the same identifier, so that installing a
 * profile replaces the previous one.
 * @throws RdError `ERR_PROFILE_INVALID` with everything that XML cannot represent.
 */
export function mobileconfigText(tree: DeploymentTree, part: Part): string {
  const settings = collectingRefusals('a configuration profile', (refuse) =>
    plistDictionary(tree, SETTINGS_INDENT, refuse),
  );
  const content = documentText(settings, part, { profile: NO_UUID, payload: NO_UUID });
  return documentText(settings, part, {
    profile: nameUuid(NAMESPACE, `profile\n${content}`),
    payload: nameUuid(NAMESPACE, `payload\n${content}`),
  });
}

const SETTINGS_INDENT = ' '.repeat(16);

/**
 * Builds the profile. It applies to the computer (`PayloadScope`), because preferences of a user profile are stored in the user's folder, where the
 * application does not look. Removal is allowed: users cannot remove a profile of a management server anyway, and a manually installed one can only
 * be removed by an administrator, who must be able to undo it.
 */
function documentText(settings: readonly string[], part: Part, uuids: Uuids): string {
  const domain = `${COMPATIBLE.policyDomain}.${part}`;
  const identifier = `io.${PRODUCT.name}.profile.${part}`;
  return `${PLIST_HEADER}  <dict>
    <key>PayloadContent</key>
    <array>
      <dict>
        <key>PayloadContent</key>
        <dict>
          <key>${domain}</key>
          <dict>
            <key>Forced</key>
            <array>
              <dict>
                <key>mcx_preference_settings</key>
${settings.join('\n')}
              </dict>
            </array>
          </dict>
        </dict>
        <key>PayloadDisplayName</key>
        <string>${TITLES[part]}</string>
        <key>PayloadIdentifier</key>
        <string>${identifier}.preferences</string>
        <key>PayloadType</key>
        <string>com.apple.ManagedClient.preferences</string>
        <key>PayloadUUID</key>
        <string>${uuids.payload}</string>
        <key>PayloadVersion</key>
        <integer>1</integer>
      </dict>
    </array>
    <key>PayloadDescription</key>
    <string>${DESCRIPTIONS[part]}</string>
    <key>PayloadDisplayName</key>
    <string>${TITLES[part]}</string>
    <key>PayloadIdentifier</key>
    <string>${identifier}</string>
    <key>PayloadOrganization</key>
    <string>${PRODUCT.name}</string>
    <key>PayloadRemovalDisallowed</key>
    <false/>
    <key>PayloadScope</key>
    <string>System</string>
    <key>PayloadType</key>
    <string>Configuration</string>
    <key>PayloadUUID</key>
    <string>${uuids.profile}</string>
    <key>PayloadVersion</key>
    <integer>1</integer>
  </dict>
</plist>
`;
}

const TITLES: Readonly<Record<Part, string>> = {
  locked: `${COMPATIBLE.productName}: locked settings`,
  defaults: `${COMPATIBLE.productName}: default settings`,
};
const DESCRIPTIONS: Readonly<Record<Part, string>> = {
  locked: `Settings of ${COMPATIBLE.productName} that hold at every start and cannot be changed.`,
  defaults: `Settings that ${COMPATIBLE.productName} begins with at its first start.`,
};

/** Writes a configuration profile of macOS, in the form that device management installs. */
export const mobileconfigExporter: Exporter = {
  name: 'mobileconfig',
  platform: 'darwin',
  fileName: (part) => `${COMPATIBLE.policyDomain}.${part}.mobileconfig`,
  text: (tree, { part }) => mobileconfigText(tree, part),
};

/**
 * The name-based UUID of a name in a namespace (RFC 9562, version 5).
 * @param namespace a UUID.
 */
export function nameUuid(namespace: string, name: string): string {
  const space = Buffer.from(namespace.replaceAll('-', ''), 'hex');
  const bytes = createHash('sha1').update(space).update(name, 'utf8').digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return groups.join('-').toUpperCase();
}
