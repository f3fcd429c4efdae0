import { isIP } from 'node:net';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { isKubernetesVersion, parseByteSize } from './canonical.ts';
import { isExtensionName, parseExtensionPattern } from './extension-image.ts';
import type { SettingField } from './field.ts';
import { isImageTag } from './image-reference.ts';
import type { Problem, ValidateContext } from './issue.ts';
import { equal, own } from './own.ts';
import type { SettingPath } from './settings.gen.ts';

/** `vz` requires a recent macOS; each type supports some mount types only. */
const machineType: Rule = (input) => {
  const { field, desired, changed, context } = input;
  const setting = `Setting ${field.path} to ${JSON.stringify(desired)}`;
  if (desired === 'vz' && changed && context.osVersion !== undefined) {
    if (context.arch === 'arm64' && isOlder(context.osVersion, 13, 3)) {
      return conflict(`${setting} on ARM requires macOS 13.3 (Ventura) or later.`);
    }
    if (isOlder(context.osVersion, 13, 0))
      return conflict(`${setting} on Intel requires macOS 13.0 (Ventura) or later.`);
  }
  const mount = input.result('virtualMachine.mount.type');
  // Other platforms have one type, so only the mount type is checked.
  if (context.platform !== 'darwin' || !takesPart(input)) return [];
  if (desired === 'vz' && mount === '9p') {
    return conflict(`${setting} requires that virtual-machine.mount.type is "reverse-sshfs" or "virtiofs".`, false);
  }
  if (desired === 'qemu' && mount === 'virtiofs') {
    return conflict(`${setting} requires that virtual-machine.mount.type is "reverse-sshfs" or "9p".`, false);
  }
  return [];
};

/** `9p` requires QEMU; `virtiofs` requires the Virtualization framework on macOS and QEMU on Linux. */
const mountType: Rule = (input) => {
  const { field, desired, context } = input;
  const needed =
    desired === '9p' ? 'qemu' : desired === 'virtiofs' ? (context.platform === 'darwin' ? 'vz' : 'qemu') : undefined;
  if (needed === undefined || !takesPart(input) || input.result('virtualMachine.type') === needed) return [];
  return conflict(`Setting ${field.path} to "${desired}" requires that virtual-machine.type is "${needed}".`);
};

const rosetta: Rule = ({ field, desired, changed, result, context }) => {
  if (desired !== true || !changed) return [];
  if (result('virtualMachine.type') !== 'vz') {
    return conflict(`Setting ${field.path} can only be enabled when virtual-machine.type is "vz".`);
  }
  if (context.arch !== 'arm64') return conflict(`Setting ${field.path} can only be enabled on aarch64 systems.`);
  return [];
};

/** The 9p options cannot change while nothing is mounted with it; checked before the value itself. */
export function ninePOption({ field, changed, result }: RuleInput): Problem[] {
  if (!changed || result('virtualMachine.mount.type') === '9p') return [];
  return conflict(`Setting ${field.path} can only be changed when virtualMachine.mount.type is "9p".`);
}

function takesPart({ changes }: RuleInput): boolean {
  return changes('virtualMachine.type') || changes('virtualMachine.mount.type');
}

function isOlder(version: string, major: number, minor: number): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map((part) => Number.parseInt(part, 10) || 0);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

/** A changed version must be available; empty lets the service choose. Any valid one passes while the list is unknown. */
const kubernetesVersion: Rule = ({ desired, changed, context }) => {
  if (!changed || typeof desired !== 'string' || desired === '') return [];
  const offered = context.kubernetesVersions ?? [];
  if (offered.length > 0 ? offered.includes(desired) : isKubernetesVersion(desired)) return [];
  return [
    { code: 'kubernetes-version', message: versionNotFound(desired), fatal: false, expected: expectation(offered) },
  ];
};

/** Returns the message for an unavailable version, which may be a value of any type. */
export function versionNotFound(value: JsonValue): string {
  return `Kubernetes version "${value}" not found.`;
}

function expectation(offered: readonly string[]): string {
  if (offered.length === 0) return 'a version such as "1.30.2"';
  return `one of ${offered.slice(0, 10).join(', ')}${offered.length > 10 ? ', …' : ''}`;
}

/** The inputs to a rule beyond one value. */
export interface RuleInput {
  field: SettingField;
  desired: JsonValue;
  current: JsonValue;
  /** True if the payload changes this setting; `changes` answers for another one. */
  changed: boolean;
  changes: (path: SettingPath) => boolean;
  /** Returns the value of a setting after the change. */
  result: (path: SettingPath) => JsonValue | undefined;
  context: ValidateContext;
}

/** Returns the problems of a value that has passed its own checks. */
export type Rule = (input: RuleInput) => Problem[];

/** A fatal conflict with another setting, as one line. */
function conflict(message: string, fatal = true): Problem[] {
  return [{ code: 'conflict', message, fatal }];
}

/** Checks proxy exceptions; all invalid entries are named in one line. */
const noproxyList: Rule = ({ field, desired, changed }) => {
  if (!changed || !Array.isArray(desired)) return [];
  const wrong = desired.filter((entry) => typeof entry === 'string' && !isNoproxyEntry(entry));
  if (wrong.length === 0) return [];
  const named = wrong.join('", "');
  const message = `field "${field.path}" has invalid entries (must be IP addresses, CIDR subnets, or domain names): "${named}"`;
  return [{ code: 'format', message, fatal: false, expected: 'IP addresses, CIDR ranges or domain names' }];
};

const LONGEST_DOMAIN = 253;
const LONGEST_LABEL = 63;

/**
 * True for an IP address, a CIDR range (host bits may be set) or a domain name with an optional `*.` or `.` prefix.
 * White space is not trimmed.
 */
export function isNoproxyEntry(text: string): boolean {
  return isAddress(text) || isDomain(text);
}

function isAddress(text: string): boolean {
  const slash = text.indexOf('/');
  const version = isIP(slash === -1 ? text : text.slice(0, slash));
  if (version === 0 || slash === -1) return version !== 0;
  const prefix = text.slice(slash + 1);
  return /^\d+$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128);
}

function isDomain(text: string): boolean {
  const name = text.startsWith('*.') ? text.slice(2) : text.startsWith('.') ? text.slice(1) : text;
  if (name.length > LONGEST_DOMAIN || isIP(name) !== 0) return false;
  return name.split('.').every(isLabel);
}

function isLabel(label: string): boolean {
  return (
    label.length <= LONGEST_LABEL && /^[A-Za-z0-9-]+$/.test(label) && !label.startsWith('-') && !label.endsWith('-')
  );
}

const WEB_ASSEMBLY = 'experimental.containerEngine.webAssembly.enabled';

/** A disk cannot shrink; an unreadable stored size forbids nothing, nor does a size larger than the actual disk. */
const diskSize: Rule = ({ field, desired, current, changed, context }) => {
  const bytes = changed && typeof desired === 'string' ? parseByteSize(desired) : undefined;
  const before = typeof current === 'string' ? parseByteSize(current) : undefined;
  if (bytes === undefined || before === undefined || bytes >= before) return [];
  const { diskBytes = before } = context;
  if (bytes >= diskBytes) return [];
  const least = diskBytes < before ? `${diskBytes / 2 ** 30}GiB` : current;
  const message = `Cannot decrease "${field.path}" from ${current} to ${desired}`;
  return [{ code: 'decrease', message, fatal: false, expected: `at least "${least}"` }];
};

/** Moby's classic store cannot hold WebAssembly images. Each of the three settings has its own message. */
function classicStore(message: string): Rule {
  return (input) => (input.changed && isClassicWithWebAssembly(input) ? conflict(message) : []);
}

/** The Spin operator requires WebAssembly. */
const spinOperator: Rule = ({ field, desired, changes, result }) => {
  const takesPart = changes(field.path) || changes('kubernetes.enabled') || changes(WEB_ASSEMBLY);
  if (!desired || !takesPart || result('kubernetes.enabled') !== true || result(WEB_ASSEMBLY)) return [];
  return conflict(
    `Setting ${field.path} can only be set when experimental.container-engine.web-assembly.enabled is set as well.`,
  );
};

function isClassicWithWebAssembly({ result }: RuleInput): boolean {
  return (
    result('containerEngine.name') === 'moby' &&
    Boolean(result(WEB_ASSEMBLY)) &&
    result('containerEngine.mobyStorageDriver') === 'classic'
  );
}

/** Checks the entries of the extension allow list. */
const extensionPatterns: Rule = ({ field, desired, changed }) => {
  if (!changed || !Array.isArray(desired)) return [];
  return desired.flatMap((pattern, index): Problem[] => {
    if (typeof pattern === 'string' && parseExtensionPattern(pattern)) return [];
    const message = `${field.path}: "${pattern}" does not describe an image reference`;
    return [
      {
        code: 'format',
        message,
        fatal: false,
        expected: 'an image such as "org/name:tag" or "org/"',
        entry: String(index),
      },
    ];
  });
};

/** Checks the image names and tags of installed extensions, except for unchanged entries. */
const installedExtensions: Rule = ({ field, desired, current, changed }) => {
  if (!changed) return [];
  if (!isObject(desired)) {
    const got = typeof desired === 'string' ? desired : JSON.stringify(desired);
    const message = `${field.path}: "${got}" is not a valid mapping`;
    return [{ code: 'type', message, fatal: false, expected: 'a map of names to strings' }];
  }
  const stored = isObject(current) ? current : {};
  return Object.keys(desired)
    .filter((name) => !equal(own(desired, name), own(stored, name)))
    .flatMap((name) => entryProblems(field.path, desired, name));
};

function entryProblems(path: string, map: JsonObject, name: string): Problem[] {
  const tag = own(map, name) ?? null;
  const problems: string[] = [];
  if (!isExtensionName(name)) problems.push(`${path}: "${name}" is an invalid name`);
  if (typeof tag !== 'string') problems.push(`${path}: "${name}" has non-string tag "${tag}"`);
  else if (!isImageTag(tag)) problems.push(`${path}: "${name}" has invalid tag "${tag}"`);
  return problems.map((message) => ({
    code: 'format',
    message,
    fatal: false,
    expected: 'an image name without tag, and its tag',
    entry: name,
  }));
}

/** Settings whose rule and lock are checked even if the value itself is invalid: scripts expect all of their messages. */
export const ALWAYS_FULLY_CHECKED: ReadonlySet<SettingPath> = new Set([
  'application.extensions.installed',
  'containerEngine.mobyStorageDriver',
  'containerEngine.name',
  'experimental.containerEngine.webAssembly.enabled',
  'experimental.kubernetes.options.spinkube',
  'virtualMachine.mount.type',
  'virtualMachine.type',
]);

/** Rules beyond the type of a value, by setting. */
export const RULES: Readonly<Partial<Record<SettingPath, Rule>>> = {
  'application.extensions.allowed.list': extensionPatterns,
  'application.extensions.installed': installedExtensions,
  'containerEngine.mobyStorageDriver': classicStore(
    'Cannot switch to classic storage for moby when WebAssembly is enabled.',
  ),
  'containerEngine.name': classicStore(
    'Cannot switch to moby container engine with classic storage when WebAssembly is enabled.',
  ),
  'virtualMachine.type': machineType,
  'virtualMachine.useRosetta': rosetta,
  'virtualMachine.mount.type': mountType,
  'kubernetes.version': kubernetesVersion,
  'experimental.containerEngine.webAssembly.enabled': classicStore(
    'Cannot enable WebAssembly with classic storage for moby.',
  ),
  'experimental.kubernetes.options.spinkube': spinOperator,
  'experimental.virtualMachine.diskSize': diskSize,
  'experimental.virtualMachine.proxy.noproxy': noproxyList,
};
