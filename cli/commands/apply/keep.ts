import { resolve } from 'node:path';
import type { DesiredDocument, Locate } from '../../../profiles/document/load.ts';
import { RdError } from '../../../src/errors.ts';
import { isObject } from '../../../src/json.ts';
import type { SentKeep } from '../../../src/plan/kept.ts';
import type { StatusDocument } from '../../../src/reconcile/status-document.ts';
import { managedLeaves, treeOf } from '../../../src/settings/blocks.ts';
import { formatFindings } from '../../../src/settings/issue.ts';
import { leafAt } from '../../../src/settings/leaf-paths.ts';
import { readKept } from '../../../src/state/kept-file.ts';
import type { Places } from '../../../src/state/places.ts';
import { usage } from '../../arguments/values.ts';

/** The values of `--keep` and `--now`. */
export interface KeepChoice {
  keep: boolean;
  now: boolean;
}

/** Options for keeping a profile. */
export interface Keepable {
  desired: DesiredDocument;
  cwd: string;
}

/** Returns the request to keep the profile; undefined if the service is not to keep it. Throws `ERR_USAGE`, `ERR_PROFILE_INVALID`. */
export function keepRequest(
  keepable: Keepable | undefined,
  { keep, now }: KeepChoice,
  status: StatusDocument,
): SentKeep | undefined {
  const name = keepable?.desired.metadata.name;
  const isKept = name !== undefined && (status.kept ?? []).some((each) => each.name === name);
  if (!keep && !isKept) return undefined;
  if (status.settingsVersion !== undefined) {
    throw usage(`--keep is for the service of rdctl, and ${status.product} keeps no profiles`);
  }
  if (!keepable || name === undefined) throw new Error('checked before');
  const { desired, cwd } = keepable;
  refuseUnmentioned(desired);
  return {
    name,
    watch: desired.watch,
    ...(desired.maintenance ? { maintenance: desired.maintenance } : {}),
    places: placesOf(desired, cwd),
    ...(now ? { now: true } : {}),
  };
}

/** Checks the flags before a service is looked for. Throws `ERR_USAGE` and `ERR_IO`. */
export async function checkKeep(
  keepable: Keepable | undefined,
  { keep, now }: KeepChoice,
  { keptFile }: Places,
): Promise<void> {
  if (keep && !keepable) throw usage('--keep takes a profile with -f, because a saved plan is applied once');
  const name = keepable?.desired.metadata.name;
  if (keep && (name === undefined || name === '')) {
    throw usage('--keep needs a profile with a name', 'Add `metadata: { name: NAME }` to the profile.');
  }
  if (keep || now || !keepable?.desired.maintenance) return;
  const kept = await readKept(keptFile);
  if (kept.some(({ profile }) => profile.name === name)) return;
  throw usage(
    'the profile has a maintenance window, for which the service has to keep it',
    'Add --keep, or apply it without the window with --now.',
  );
}

/** Throws `ERR_PROFILE_INVALID` for a rule about a field that the profile does not mention: it has no effect, so it is a mistake. */
function refuseUnmentioned(desired: DesiredDocument): void {
  const { watch, locate } = desired;
  const mentioned = mentionedPaths(desired);
  const findings = Object.keys(watch.fields).flatMap((path) => {
    if (mentioned.some((each) => each === path || each.startsWith(`${path}.`))) return [];
    const place = locate(['watch', 'fields', path], 'key');
    const message = `watch.fields names ${path}, which the profile does not mention`;
    return [{ pointer: '/watch/fields', message, ...place }];
  });
  if (findings.length === 0) return;
  throw new RdError('ERR_PROFILE_INVALID', 'The profile cannot be kept; nothing was sent.', {
    details: formatFindings(findings),
  });
}

/** Returns the mentioned settings, fields of blocks, `state` and `portForwards`. */
function mentionedPaths({ request, portForwards, prunePortForwards }: DesiredDocument): string[] {
  const { state, prune } = request;
  return [
    ...managedLeaves(request).map(([path]) => path),
    ...prune,
    ...(state === 'unmanaged' ? [] : ['state']),
    ...(portForwards.length > 0 || prunePortForwards ? ['portForwards'] : []),
  ].filter((path) => path !== 'version');
}

/** Returns the place where the documents mention each field, by path; for a map, each entry as well. */
function placesOf(desired: DesiredDocument, cwd: string): Record<string, string> {
  const { request, locate } = desired;
  const places: Record<string, string> = {};
  const add = (name: string, names: readonly string[]) => {
    const text = placeText(locate, names, cwd);
    if (text !== undefined) places[name] = text;
  };
  for (const path of mentionedPaths(desired)) {
    add(path, path.split('.'));
    const value = leafAt(treeOf(request), path);
    for (const key of isObject(value) ? Object.keys(value) : []) add(`${path}[${key}]`, [...path.split('.'), key]);
  }
  return places;
}

function placeText(locate: Locate, names: readonly string[], cwd: string): string | undefined {
  const place = locate(names, 'key');
  if (!place) return undefined;
  const file = place.file === '<stdin>' ? place.file : resolve(cwd, place.file);
  return `${file}:${place.line}:${place.column}`;
}
