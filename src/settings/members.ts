import { FIELDS } from './fields.gen.ts';
import { membersOfToday, type SettingMember } from './fields.ts';
import { leafAt, setLeaf } from './leaf-paths.ts';
import { migrateWithOrigins, originOf } from './migrate.ts';
import { olderMembers } from './older-shapes.ts';
import { SCHEMA_VERSION } from './settings.gen.ts';

export type { SettingMember };

type Names = ReturnType<typeof olderMembers>;

/**
 * Returns the names valid in this version: today's and its own. The registry ignores letter case and has few types, so
 * both come from here; with today's names alone, moved settings would be lost.
 */
export function membersOfVersion(version: number): SettingMember[] {
  const today = membersOfToday();
  return version >= SCHEMA_VERSION ? today : mergeOlder(today, olderMembers(version), '', version);
}

function mergeOlder(today: readonly SettingMember[], older: Names, prefix: string, version: number): SettingMember[] {
  const members = new Map(today.map((member) => [member.name, member]));
  for (const [name, below] of Object.entries(older)) {
    const path = `${prefix}${name}`;
    const known = members.get(name);
    if (below === true) {
      // A setting may have been at the path of a section (`telemetry`), but never beside it.
      if (known?.kind !== 'setting')
        members.set(name, movedSetting(name, path, version) ?? known ?? { name, kind: 'ended' });
    } else {
      const inner = known?.kind === 'section' ? known.members : [];
      if (known === undefined || known.kind === 'section') {
        members.set(name, { name, kind: 'section', members: mergeOlder(inner, below, `${path}.`, version) });
      }
    }
  }
  return [...members.values()];
}

/** Describes a moved setting, which has the type of its successor; migrating a single value finds the successor. */
function movedSetting(name: string, path: string, version: number): SettingMember | undefined {
  const document = { version };
  setLeaf(document, path, path === 'extensions' ? { 'a:b': true } : true);
  const { document: migrated, origins } = migrateWithOrigins(document, { platform: 'win32', partial: true });
  const field = FIELDS.find(
    (each) => leafAt(migrated, each.path) !== undefined && originOf(origins, each.path) === path,
  );
  return field && { name, kind: 'setting', type: field.type };
}
