import { messageOf, RdError } from '../../src/errors.ts';
import { defined, type JsonObject, type JsonValue } from '../../src/json.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { put } from '../../src/settings/own.ts';
import {
  collectingRefusals,
  decodeText,
  type Exporter,
  type Importer,
  type Loss,
  partOfName,
  type Refuse,
} from './format.ts';
import { isDictionary, isUnsupported, type PlistDictionary, type PlistValue, xmlPlist } from './plist-xml.ts';
import { type DeploymentTree, type DeploymentValue, entryPath, isTree } from './tree.ts';
import { xmlProblem, xmlText } from './xml.ts';

/** Reads a macOS property list, XML or binary. */
export const plistImporter: Importer = {
  name: 'plist',
  platform: 'darwin',
  recognizes: isPlist,
  async read(bytes, label) {
    const value = await plistOf(bytes, label);
    if (!isDictionary(value)) throw invalidPlist(label, 'it does not contain a dictionary');
    const part = partOfName(label);
    return [{ ...(part ? { part } : {}), source: label, ...settingsOf(value) }];
  },
};

/** True for bytes that begin like a property list in either form. */
export function isPlist(bytes: Uint8Array): boolean {
  const head = headOf(bytes);
  return head.startsWith('bplist') || /^<(?:\?xml|!DOCTYPE plist|plist|!--)/.test(head);
}

/** Decodes the first characters. */
function headOf(bytes: Uint8Array): string {
  const wide = wideEncoding(bytes);
  return new TextDecoder(wide ?? 'utf-8').decode(bytes.subarray(0, 1024)).trimStart();
}

function wideEncoding(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined;
}

/** Parses a property list. @throws RdError `ERR_PROFILE_INVALID` for anything that is not a readable one. */
export async function plistOf(bytes: Uint8Array, label: string): Promise<PlistValue> {
  return plistValue(bytes).catch((cause: unknown) => {
    throw invalidPlist(label, messageOf(cause), cause);
  });
}

/** Parses a property list. @throws Error with a clause that describes the problem. */
export async function plistValue(bytes: Uint8Array): Promise<PlistValue> {
  if (headOf(bytes).startsWith('bplist')) {
    const { binaryPlist } = await import('./plist-binary.ts');
    return binaryPlist(bytes);
  }
  const wide = wideEncoding(bytes);
  const text = decodeText(bytes, wide);
  const declared = /^<\?xml[^>]*encoding\s*=\s*["']([^"']+)["']/i.exec(text?.trimStart() ?? headOf(bytes))?.[1];
  const encoding = wide ? 'UTF-16' : 'UTF-8';
  if (declared !== undefined && !(wide ? /^utf-16/i : /^(?:utf-8|us-ascii)$/i).test(declared)) {
    throw new Error(`it is declared as ${declared} and not encoded so; UTF-8 and UTF-16 are read`);
  }
  if (text === undefined) throw new Error(`it is not ${encoding}`);
  return xmlPlist(text);
}

/** The settings in a dictionary. Values of types that no setting can have are reported as `lost`. */
export function settingsOf(dictionary: PlistDictionary): { settings: JsonObject; lost: Loss[] } {
  const lost: Loss[] = [];
  const settings = objectOf(dictionary, [], (place, other) => {
    // The application converts property lists to JSON, which cannot represent the value.
    lost.push({
      place,
      reason: `the application refuses the whole profile because of it: it is ${other}`,
      refused: true,
    });
  });
  return { settings, lost };
}

function invalidPlist(label: string, reason: string, cause?: unknown): RdError {
  return new RdError('ERR_PROFILE_INVALID', `${label} is not a property list that can be read: ${reason}`, {
    ...defined({ cause }),
    advice: 'Export it again, or check it with `plutil -lint` on macOS.',
  });
}

/** Called for a value that JSON cannot represent, with its dotted path and its type, including the article. */
type OnUnsupported = (place: string, other: string) => void;

function objectOf(dictionary: PlistDictionary, above: readonly string[], onUnsupported: OnUnsupported): JsonObject {
  const object: JsonObject = {};
  for (const [name, value] of dictionary) {
    const read = jsonOf(value, onUnsupported, [...above, name]);
    if (read !== undefined) put(object, name, read);
  }
  return object;
}

/** Converts a value to JSON, without anything that JSON cannot represent; returns undefined if nothing is left. */
export function jsonOf(
  value: PlistValue,
  onUnsupported: OnUnsupported,
  names: readonly string[] = [],
): JsonValue | undefined {
  if (typeof value !== 'object') return value;
  if (isDictionary(value)) return objectOf(value, names, onUnsupported);
  if (isUnsupported(value)) return void onUnsupported(names.join('.'), value.other);
  const items = value.map((item, index) => jsonOf(item, onUnsupported, [...names, String(index)]));
  // A list is one value: dropping one of its items would change its meaning.
  return items.every((item) => item !== undefined) ? items : undefined;
}

/** Order in which the compatible tool writes the members of each section. */
export const PLIST_ORDER: Readonly<Record<string, readonly string[]>> = {
  '': [
    'version',
    'application',
    'containerEngine',
    'virtualMachine',
    'kubernetes',
    'experimental',
    'WSL',
    'portForwarding',
    'images',
    'containers',
    'diagnostics',
  ],
  application: [
    'adminAccess',
    'debug',
    'extensions',
    'pathManagementStrategy',
    'telemetry',
    'updater',
    'autoStart',
    'startInBackground',
    'hideNotificationIcon',
    'window',
    'locale',
    'theme',
  ],
  'application.extensions': ['allowed', 'installed'],
  'application.extensions.allowed': ['enabled', 'list'],
  containerEngine: ['name', 'allowedImages', 'mobyStorageDriver'],
  'containerEngine.allowedImages': ['enabled', 'patterns'],
  virtualMachine: ['memoryInGB', 'numberCPUs', 'type', 'useRosetta', 'mount'],
  kubernetes: ['version', 'port', 'enabled', 'options', 'ingress'],
  'kubernetes.options': ['traefik', 'flannel'],
  experimental: ['containerEngine', 'kubernetes', 'virtualMachine'],
  'experimental.virtualMachine': ['diskSize', 'mount', 'proxy', 'sshPortForwarder'],
  'experimental.virtualMachine.mount.9p': ['securityModel', 'protocolVersion', 'msizeInKib', 'cacheMode'],
  'experimental.virtualMachine.proxy': ['enabled', 'address', 'password', 'port', 'username', 'noproxy'],
  images: ['showAll', 'namespace'],
  containers: ['showAll', 'namespace'],
  diagnostics: ['showMuted', 'mutedChecks', 'connectivity'],
  'diagnostics.connectivity': ['interval', 'timeout'],
};

/** The start of every XML property list, up to its first element. */
export const PLIST_HEADER = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
`;

/**
 * A deployment profile as an XML property list; ends with an empty line.
 * @throws RdError `ERR_PROFILE_INVALID` with everything that XML cannot represent.
 */
export function plistText(tree: DeploymentTree): string {
  const lines = collectingRefusals('a property list', (refuse) => plistDictionary(tree, '  ', refuse));
  return `${PLIST_HEADER}${lines.map((line) => `${line}\n`).join('')}</plist>\n\n`;
}

/** The lines of a dictionary with the settings of a profile, for a file that holds more than one profile. */
export function plistDictionary(tree: DeploymentTree, indent: string, refuse: Refuse): string[] {
  return dictionary(tree, { path: '', indent, refuse });
}

interface Place {
  path: string;
  indent: string;
  refuse: Refuse;
}

function dictionary(tree: DeploymentTree, place: Place): string[] {
  const indent = `${place.indent}  `;
  const lines = inOrder(tree, place.path).flatMap(([name, value]) => {
    const path = entryPath(place.path, name);
    const inner = { ...place, path, indent };
    return [`${indent}<key>${text(name, inner, 'its name: ')}</key>`, ...formatValue(value, inner)];
  });
  return [`${place.indent}<dict>`, ...lines, `${place.indent}</dict>`];
}

/** Sorts the members of a section. Entries of maps are not listed here and keep their sorted order. */
function inOrder(tree: DeploymentTree, path: string): [string, DeploymentValue][] {
  const order = (Object.hasOwn(PLIST_ORDER, path) ? PLIST_ORDER[path] : undefined) ?? [];
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...tree].sort(([a], [b]) => place(a) - place(b));
}

function formatValue(value: DeploymentValue, place: Place): string[] {
  const { indent, path } = place;
  if (isTree(value)) return dictionary(value, place);
  switch (typeof value) {
    case 'boolean':
      return [`${indent}<${value}/>`];
    case 'number':
      return [`${indent}<integer>${value}</integer>`];
    case 'string':
      return [`${indent}<string>${text(value, place)}</string>`];
    default: {
      const entries = value.map((entry, index) => text(entry, { ...place, path: `${path}[${index}]` }));
      return [
        `${indent}<array>`,
        ...entries.map((entry) => `${indent}  <string>${entry}</string>`),
        `${indent}</array>`,
      ];
    }
  }
}

function text(value: string, { path, refuse }: Place, subject = ''): string {
  const problem = xmlProblem(value);
  if (problem !== undefined) refuse(path, `${subject}${problem}`);
  return xmlText(value);
}

/** Writes a macOS property list. */
export const plistExporter: Exporter = {
  name: 'plist',
  platform: 'darwin',
  fileName: (part) => `${COMPATIBLE.policyDomain}.${part}.plist`,
  text: plistText,
};
