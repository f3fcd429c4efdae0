import { COMPATIBLE } from '../../src/product.ts';
import type { DeploymentMembers, DeploymentTree, DeploymentValue } from '../deployment/tree.ts';
import type { Exporter } from './exporter.ts';

/** Order in which the compatible tool writes the members of each section (cli facts, 7.5). */
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

const HEADER = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
`;

/** A deployment profile as an XML property list (cli facts, 7.5); ends with an empty line. */
export function plistText({ members }: Pick<DeploymentTree, 'members'>): string {
  const lines = dictionary(members, '', '  ');
  return `${HEADER}${lines.map((line) => `${line}\n`).join('')}</plist>\n\n`;
}

function dictionary(members: DeploymentMembers, path: string, indent: string): string[] {
  const inner = `${indent}  `;
  const lines = inOrder(members, path).flatMap(([name, value]) => [
    `${inner}<key>${escaped(name)}</key>`,
    ...written(value, path === '' ? name : `${path}.${name}`, inner),
  ]);
  return [`${indent}<dict>`, ...lines, `${indent}</dict>`];
}

/** Entries of maps have no order here and keep the sorted one that they come in. */
function inOrder(members: DeploymentMembers, path: string): [string, DeploymentValue][] {
  const order = PLIST_ORDER[path] ?? [];
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...members].sort(([a], [b]) => place(a) - place(b));
}

function written(value: DeploymentValue, path: string, indent: string): string[] {
  switch (value.kind) {
    case 'boolean':
      return [`${indent}<${String(value.value)}/>`];
    case 'integer':
      return [`${indent}<integer>${value.value}</integer>`];
    case 'string':
      return [`${indent}${text(value.value)}`];
    case 'strings':
      return [`${indent}<array>`, ...value.value.map((entry) => `${indent}  ${text(entry)}`), `${indent}</array>`];
    case 'map':
    case 'section':
      return dictionary(value.members, path, indent);
  }
}

function text(value: string): string {
  return `<string>${escaped(value)}</string>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
  '\t': '&#x9;',
  '\n': '&#xA;',
  '\r': '&#xD;',
};

/** What XML cannot hold at all becomes the replacement character: half a surrogate pair too. */
function escaped(value: string): string {
  return value
    .replace(/[&<>"'\t\n\r]/g, (sign) => ENTITIES[sign] ?? sign)
    .replace(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, (sign) => (sign >= ' ' && /\p{Cc}/u.test(sign) ? sign : '\ufffd'));
}

/** A property list of macOS. */
export const plistExporter: Exporter = {
  name: 'plist',
  platform: 'darwin',
  fileName: (part) => `${COMPATIBLE.policyDomain}.${part}.plist`,
  text: (tree) => plistText(tree),
};
