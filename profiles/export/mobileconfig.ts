import { COMPATIBLE, PRODUCT } from '../../src/product.ts';
import type { Part } from '../deployment/part.ts';
import type { DeploymentTree } from '../deployment/tree.ts';
import type { Exporter } from './exporter.ts';
import { PLIST_HEADER, plistDictionary } from './plist.ts';
import { writingAll } from './refusal.ts';
import { nameUuid } from './uuid.ts';

/** Of all UUIDs in our configuration profiles. Never changes: a profile would get another identity by it. */
const NAMESPACE = 'e9a4cbd9-903e-4816-82ef-a6cda6107599';
const NO_UUID = '00000000-0000-0000-0000-000000000000';

interface Uuids {
  profile: string;
  payload: string;
}

/**
 * A deployment profile as a configuration profile for Apple computers. Its one payload has the type
 * `com.apple.ManagedClient.preferences`, whose settings are those of a preference domain and nothing else (`ManagedPreferences`
 * in Apple's device management reference: domain, `Forced`, `mcx_preference_settings`); a payload of the domain's own type
 * would have its `Payload…` keys among the settings. macOS keeps forced preferences of the computer in
 * `/Library/Managed Preferences/DOMAIN.plist`, which is where the application looks first (tool facts, 8.1). Not tried on macOS.
 *
 * The same settings give the same bytes, UUIDs too; other settings get other UUIDs under the same identifier, so that an
 * installed profile is replaced and not joined by a second one.
 * @throws RdError `ERR_PROFILE_INVALID` with everything that XML cannot hold.
 */
export function mobileconfigText({ members }: Pick<DeploymentTree, 'members'>, part: Part): string {
  const settings = writingAll('a configuration profile', (refuse) => plistDictionary(members, SETTINGS_INDENT, refuse));
  const content = documentText(settings, part, { profile: NO_UUID, payload: NO_UUID });
  return documentText(settings, part, {
    profile: nameUuid(NAMESPACE, `profile\n${content}`),
    payload: nameUuid(NAMESPACE, `payload\n${content}`),
  });
}

const SETTINGS_INDENT = ' '.repeat(16);

/**
 * A profile of the computer (`PayloadScope`), because one of a user ends in that user's own folder, where the application does
 * not look. Removal is not forbidden: a profile of a management server cannot be removed by a user anyway, and one that was
 * installed by hand only by an administrator, who has to be able to go back.
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

/** A configuration profile of macOS, as device management installs it. */
export const mobileconfigExporter: Exporter = {
  name: 'mobileconfig',
  platform: 'darwin',
  fileName: (part) => `${COMPATIBLE.policyDomain}.${part}.mobileconfig`,
  text: (tree, { part }) => mobileconfigText(tree, part),
};
