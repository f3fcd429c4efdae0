import { COMPATIBLE } from '../../src/product.ts';
import { entryPath } from '../deployment/entry-path.ts';
import type { DeploymentMembers, DeploymentTree, DeploymentValue } from '../deployment/tree.ts';
import type { Exporter } from './exporter.ts';
import { type Refuse, writingAll } from './refusal.ts';
import { xmlProblem, xmlText } from './xml-text.ts';

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

/** Of every property list in XML, up to its first element. */
export const PLIST_HEADER = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
`;

/**
 * A deployment profile as an XML property list (tool facts, 7.5); ends with an empty line.
 * @throws RdError `ERR_PROFILE_INVALID` with everything that XML cannot hold.
 */
export function plistText({ members }: Pick<DeploymentTree, 'members'>): string {
  const lines = writingAll('a property list', (refuse) => plistDictionary(members, '  ', refuse));
  return `${PLIST_HEADER}${lines.map((line) => `${line}\n`).join('')}</plist>\n\n`;
}

/** The lines of a dictionary with the members of a profile, for a file that holds more than one profile. */
export function plistDictionary(members: DeploymentMembers, indent: string, refuse: Refuse): string[] {
  return dictionary(members, { path: '', indent, refuse });
}

interface Place {
  path: string;
  indent: string;
  refuse: Refuse;
}

function dictionary(members: DeploymentMembers, place: Place): string[] {
  const indent = `${place.indent}  `;
  const lines = inOrder(members, place.path).flatMap(([name, value]) => {
    const path = entryPath(place.path, name);
    const inner = { ...place, path, indent };
    return [`${indent}<key>${text(name, inner, 'its name: ')}</key>`, ...written(value, inner)];
  });
  return [`${place.indent}<dict>`, ...lines, `${place.indent}</dict>`];
}

/** Entries of maps have no order here and keep the sorted one that they come in. */
function inOrder(members: DeploymentMembers, path: string): [string, DeploymentValue][] {
  const order = (Object.hasOwn(PLIST_ORDER, path) ? PLIST_ORDER[path] : undefined) ?? [];
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...members].sort(([a], [b]) => place(a) - place(b));
}

function written(value: DeploymentValue, place: Place): string[] {
  const { indent, path } = place;
  switch (value.kind) {
    case 'boolean':
      return [`${indent}<${String(value.value)}/>`];
    case 'integer':
      return [`${indent}<integer>${value.value}</integer>`];
    case 'string':
      return [`${indent}<string>${text(value.value, place)}</string>`];
    case 'strings': {
      const entries = value.value.map((entry, index) => text(entry, { ...place, path: `${path}[${index}]` }));
      return [
        `${indent}<array>`,
        ...entries.map((entry) => `${indent}  <string>${entry}</string>`),
        `${indent}</array>`,
      ];
    }
    case 'map':
    case 'section':
      return dictionary(value.members, place);
  }
}

function text(value: string, { path, refuse }: Place, subject = ''): string {
  const problem = xmlProblem(value);
  if (problem !== undefined) refuse(path, `${subject}${problem}`);
  return xmlText(value);
}

/** A property list of macOS. */
export const plistExporter: Exporter = {
  name: 'plist',
  platform: 'darwin',
  fileName: (part) => `${COMPATIBLE.policyDomain}.${part}.plist`,
  text: (tree) => plistText(tree),
};
