import type { Driver, DriverInfo } from '../drivers/driver.ts';
import { RdError, type RdErrorOptions } from '../errors.ts';
import { defined, type JsonObject } from '../json.ts';
import { canonicalize } from '../settings/canonical.ts';
import type { Platform } from '../settings/field.ts';
import { settingAt } from '../settings/fields.ts';
import { leafAt, leaves } from '../settings/leaf-paths.ts';
import { changedPaths, mergeSettings } from '../settings/merge.ts';
import { migrate, versionProblem } from '../settings/migrate.ts';
import type { SettingPath, Settings } from '../settings/settings.gen.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import type { ValidateContext } from '../settings/validate.ts';
import { isChange, unknownKeys, validate } from '../settings/validate.ts';
import { blockOf } from './blocks.ts';

/** The effect of a body on the settings. */
export type Update =
  /** Every problem, one line each; nothing may be changed. */
  | { kind: 'refused'; problems: string[] }
  | { kind: 'unchanged'; ignored: string[] }
  | { kind: 'changed'; settings: Settings; paths: SettingPath[]; ignored: string[] };

export interface UpdateContext {
  driver: DriverInfo & Pick<Driver, 'diskBytes'>;
  host: { platform: Platform; arch: string; osVersion?: string };
  /** Returns the exact versions that the cluster driver offers, or undefined if they are unknown or there is no cluster. */
  kubernetesVersions(): readonly string[] | undefined;
  /** Record of locked fields; without one, locks are not checked. */
  locks?: JsonObject;
  /** Report only the lock of a changed field that is locked, not the problems of its value. */
  locksFirst?: boolean;
}

/** Builds the error of a refused write: a heading, which scripts match, and one line per problem. */
export function updateError(problems: readonly string[], options?: RdErrorOptions): RdError {
  return new RdError(
    'ERR_SETTINGS_INVALID',
    ['errors in attempt to update settings:', ...problems].join('\n'),
    options,
  );
}

/** Decides a write. It may have any version from 1 on, which is required, and is migrated. Pure. */
export function decideUpdate(payload: JsonObject, current: Settings, context: UpdateContext): Update {
  const problem = versionProblem(payload.version);
  if (problem !== undefined) return { kind: 'refused', problems: [problem] };
  const older = typeof payload.version === 'number' && payload.version < SCHEMA_VERSION;
  const migrated = older ? migrate(payload, { platform: context.host.platform, partial: true }) : payload;
  return decideProposal(migrated, current, context);
}

/** Decides a proposal. It has the newest version or none, and is not migrated. Pure. */
export function decideProposal(sent: JsonObject, current: Settings, context: UpdateContext): Update {
  const payload = canonicalize(sent);
  const issues = validate(payload, validateContext(current, context));
  const reported = new Set(issues.map(({ path }) => path));
  const problems = [...issues.map(({ message }) => message), ...refusals(payload, current, context, reported)];
  if (problems.length > 0) return { kind: 'refused', problems };
  const ignored = unknownKeys(payload).map((key) => key.path);
  const settings = mergeSettings(current, payload);
  const paths = changedPaths(current, settings);
  return paths.length === 0 ? { kind: 'unchanged', ignored } : { kind: 'changed', settings, paths, ignored };
}

/** Returns this service's facts for the validator. */
export function validateContext(current: Settings, context: UpdateContext): ValidateContext {
  const { host, locks, locksFirst } = context;
  const kubernetesVersions = context.kubernetesVersions();
  const diskBytes = context.driver.diskBytes?.();
  return {
    current,
    platform: host.platform,
    arch: host.arch,
    ...defined({ osVersion: host.osVersion, locked: locks, locksFirst, diskBytes, kubernetesVersions }),
  };
}

/** Lists fields whose new value the driver cannot apply, one line each; the present value is always allowed. */
function refusals(
  payload: JsonObject,
  current: Settings,
  { driver }: UpdateContext,
  reported: ReadonlySet<string>,
): string[] {
  return leaves(payload).flatMap(([path, after]) => {
    const field = settingAt(path);
    if (path === 'version' || reported.has(path) || !field || !isChange(field, leafAt(current, path), after)) return [];
    const blocked = blockOf({ path, action: 'update', after }, { locks: {}, driver });
    return blocked ? [blocked.message] : [];
  });
}
