import { allowsImage, createAllowList } from '../allowed-images/allow-list.ts';
import { RdError } from '../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { type ExtensionImage, parseExtensionImage, permitsOf } from '../settings/extension-image.ts';
import { formatReference } from '../settings/image-reference.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Change } from './change.ts';
import { type Difference, EXTENSIONS } from './diff.ts';
import type { Cost } from './severity.ts';

/** The planned state that decides whether an extension can be installed or uninstalled. */
export interface ExtensionGate {
  /** Power after the plan. */
  power: 'started' | 'stopped';
  /** Absent if every extension is permitted. */
  permits?: (image: ExtensionImage) => boolean;
}

export function extensionGate(
  power: ExtensionGate['power'],
  { enabled, list }: Settings['application']['extensions']['allowed'],
): ExtensionGate {
  return { power, ...(enabled ? { permits: permitsOf(list) } : {}) };
}

const PERMIT = 'Permit it in "application.extensions.allowed.list", or take it out of the profile.';

/** Returns the reason that an extension cannot be installed, upgraded or uninstalled, or undefined if it can. */
export function extensionBlock({ key = '', after }: Difference, gate: ExtensionGate): Change['blocked'] {
  if (gate.power === 'stopped') {
    const message = `"${EXTENSIONS}" can be changed only while an engine runs, and the backend is to be stopped.`;
    return {
      by: 'unsupported',
      message,
      advice: 'Have the backend run with `state: started`, or leave the extensions as they are.',
    };
  }
  if (after === undefined || isPermitted(key, after, gate)) return undefined;
  const message = `"${EXTENSIONS}": "application.extensions.allowed.list" does not permit ${key}:${String(after)}.`;
  return { by: 'unsupported', message, advice: PERMIT };
}

/** Returns the cost of installing or uninstalling an extension, which never interrupts anything that runs. */
export function extensionCost({ action, before, after }: Difference): Cost {
  switch (action) {
    case 'create':
      return { severity: 'live', reason: `version ${String(after)} is installed from its image` };
    case 'update':
      return { severity: 'live', reason: `version ${String(after)} replaces ${String(before)}` };
    case 'delete':
      return { severity: 'live', reason: 'it is uninstalled' };
  }
}

/**
 * Lists installed extensions that the planned allow list does not permit. They are uninstalled; one that the request
 * itself asks for is a contradiction, and blocked.
 */
export function refusedExtensions(
  {
    live,
    requested,
    isIncluded,
  }: { live: Settings; requested: JsonObject; isIncluded(difference: Difference): boolean },
  differences: readonly Difference[],
  gate: ExtensionGate,
) {
  if (gate.power !== 'started') return [];
  const requestedMap = leafAt(requested, EXTENSIONS);
  const known = new Set(differences.filter(({ path }) => path === EXTENSIONS).map(({ key }) => key));
  return Object.entries(live.application.extensions.installed)
    .filter(([key, tag]) => !known.has(key) && !isPermitted(key, tag, gate))
    .map(([key, tag]) => {
      const difference: Difference = { path: EXTENSIONS, key, action: 'delete', before: tag };
      const isRequested = isObject(requestedMap) && Object.hasOwn(requestedMap, key) && isIncluded(difference);
      const message = `"${EXTENSIONS}" asks for ${key}:${tag}, which "application.extensions.allowed.list" does not permit.`;
      const blocked: Change['blocked'] = isRequested ? { by: 'unsupported', message, advice: PERMIT } : undefined;
      const cost: Cost = {
        severity: 'live',
        reason: 'the list of allowed extensions does not permit it; it is uninstalled',
      };
      return { difference, blocked, cost };
    });
}

/** One API call that changes an extension. `id`: the image to install, or the name to uninstall. */
export interface ExtensionStep {
  what: 'install' | 'uninstall';
  id: string;
}

/** Returns the steps that resolve the differences of extensions, in order of execution, and the settings once they are done. */
export function extensionSteps(
  settings: Settings,
  resolved: readonly Difference[],
): { steps: ExtensionStep[]; after: Settings } {
  const differing = resolved.filter(({ path }) => path === EXTENSIONS);
  if (differing.length === 0) return { steps: [], after: settings };
  const installed = new Map(Object.entries(settings.application.extensions.installed));
  const removals: ExtensionStep[] = [];
  const installs: ExtensionStep[] = [];
  for (const { key = '', after } of differing) {
    if (typeof after === 'string') {
      installed.set(key, after);
      installs.push({ what: 'install', id: `${key}:${after}` });
    } else {
      installed.delete(key);
      removals.push({ what: 'uninstall', id: key });
    }
  }
  const { application } = settings;
  const extensions = { ...application.extensions, installed: Object.fromEntries(installed) };
  return { steps: [...removals, ...installs], after: { ...settings, application: { ...application, extensions } } };
}

/** Builds the error for all failed calls, one line each; the rest of the plan has been applied. */
export function extensionFailure(failures: readonly string[]): RdError {
  const count = failures.length === 1 ? 'An extension' : `${failures.length} extensions`;
  return new RdError('ERR_EXTENSION_INVALID', `${count} could not be changed to match the profile.`, {
    details: failures,
    advice: 'Everything else has been applied. Correct what is named and apply again.',
  });
}

function isPermitted(name: string, tag: JsonValue, { permits }: ExtensionGate): boolean {
  if (!permits) return true;
  const image = parseExtensionImage(`${name}:${String(tag)}`);
  return image !== undefined && permits(image);
}

/** Characters of patterns with `*` that a plan compares with images: some ten thousand comparisons. */
const MOST_COMPARED = 2_000_000;

/** Warns about extensions whose images the engine may not pull. They do not block: an engine that already has the image need not pull it. */
export function deniedImageWarnings(differences: readonly Difference[], { containerEngine }: Settings): string[] {
  const { name, allowedImages } = containerEngine;
  if (!allowedImages.enabled) return [];
  const wanted = differences.filter(({ path, after }) => path === EXTENSIONS && after !== undefined);
  if (wanted.length === 0) return [];
  const list = createAllowList(allowedImages.patterns);
  const most = Math.max(1, Math.floor(MOST_COMPARED / Math.max(1, list.effort)));
  const warnings = wanted.slice(0, most).flatMap(({ key = '', after }) => {
    const id = `${key}:${String(after)}`;
    const image = parseExtensionImage(id);
    if (image && allowsImage(list, formatReference(image))) return [];
    return [
      `The extension ${id} is not among the allowed images: it can be installed only where ${name} has it already.`,
    ];
  });
  const left = wanted.length - most;
  if (left <= 0) return warnings;
  return [
    ...warnings,
    `Whether the allowed images include another ${left} extensions was not looked up, because too many of their patterns contain *.`,
  ];
}
