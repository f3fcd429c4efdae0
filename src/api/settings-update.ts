import type { JsonObject } from '../json.ts';
import { blockOf } from '../plan/blocks.ts';
import { canonicalize } from '../settings/canonical.ts';
import { fieldAt } from '../settings/fields.ts';
import { leafAt, leaves } from '../settings/leaf-paths.ts';
import { changedPaths, mergeSettings } from '../settings/merge.ts';
import { migrate, versionProblem } from '../settings/migrate.ts';
import type { SettingPath, Settings } from '../settings/settings.gen.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import type { ValidateContext } from '../settings/validate.ts';
import { isChange, unknownKeys, validate } from '../settings/validate.ts';
import type { ApiContext } from './context.ts';
import { TEXTS } from './wire-texts.ts';

/** What a body would do to the settings. */
export type Update =
  /** Every problem, one line each below a heading; nothing may be changed. */
  | { kind: 'refused'; message: string }
  | { kind: 'unchanged'; ignored: string[] }
  | { kind: 'changed'; settings: Settings; paths: SettingPath[]; ignored: string[] };

export type UpdateSurroundings = Pick<ApiContext, 'driver' | 'host' | 'kubernetesVersions'> & {
  /** Record of locked fields; without one, locks are not looked at. */
  locks?: JsonObject;
};

/** A write: any version from 1 on, migrated; a version is required. Pure. */
export function decideUpdate(payload: JsonObject, current: Settings, around: UpdateSurroundings): Update {
  const problem = versionProblem(payload.version);
  if (problem !== undefined) return refused(TEXTS.updateErrors, [problem]);
  const older = typeof payload.version === 'number' && payload.version < SCHEMA_VERSION;
  const migrated = older ? migrate(payload, { platform: around.host.platform, partial: true }) : payload;
  return decide(migrated, current, around, TEXTS.updateErrors);
}

/** A question: the present version or none, and no migration. Pure. */
export function decideProposal(payload: JsonObject, current: Settings, around: UpdateSurroundings): Update {
  return decide(payload, current, around, TEXTS.proposalErrors);
}

function decide(sent: JsonObject, current: Settings, around: UpdateSurroundings, heading: string): Update {
  const payload = canonicalize(sent);
  const issues = validate(payload, validateContext(current, around));
  const refusedAlready = new Set(issues.map(({ path }) => path));
  const lines = [...issues.map(({ message }) => message), ...refusals(payload, current, around, refusedAlready)];
  if (lines.length > 0) return refused(heading, lines);
  const ignored = unknownKeys(payload).map((key) => key.path);
  const settings = mergeSettings(current, payload);
  const paths = changedPaths(current, settings);
  return paths.length === 0 ? { kind: 'unchanged', ignored } : { kind: 'changed', settings, paths, ignored };
}

/** What the validator needs to know of this service. */
export function validateContext(current: Settings, around: UpdateSurroundings): ValidateContext {
  const { host, locks } = around;
  const kubernetesVersions = around.kubernetesVersions();
  const diskBytes = around.driver.diskBytes?.();
  return {
    current,
    platform: host.platform,
    arch: host.arch,
    ...(host.osVersion === undefined ? {} : { osVersion: host.osVersion }),
    ...(locks === undefined ? {} : { locked: locks }),
    ...(diskBytes === undefined ? {} : { diskBytes }),
    ...(kubernetesVersions === undefined ? {} : { kubernetesVersions }),
  };
}

/** Fields whose new value the driver cannot give effect to, one line each; the present value is always welcome. */
function refusals(
  payload: JsonObject,
  current: Settings,
  { driver }: UpdateSurroundings,
  refusedAlready: ReadonlySet<string>,
): string[] {
  return leaves(payload).flatMap(([path, after]) => {
    const field = fieldAt(path);
    if (path === 'version' || refusedAlready.has(path) || !field || !isChange(field, leafAt(current, path), after))
      return [];
    const blocked = blockOf({ path, action: 'update', after }, { locks: {}, driver });
    return blocked ? [blocked.message] : [];
  });
}

function refused(heading: string, lines: readonly string[]): Update {
  return { kind: 'refused', message: [heading, ...lines].join('\n') };
}
