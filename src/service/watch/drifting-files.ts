import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import type { Change, PlanRequest } from '../../plan/change.ts';
import type { FilesPart } from '../../plan/user-files.ts';
import { leafAt } from '../../settings/leaf-paths.ts';
import type { SettingPath } from '../../settings/settings.gen.ts';

/** A file of the user that no longer follows the settings, and the change that sets it back. */
export interface DriftingFile {
  part: FilesPart;
  change: Change;
}

/** The setting that controls each part of the user's files. */
const FILE_SETTINGS: Record<FilesPart, SettingPath> = {
  path: 'application.pathManagementStrategy',
  autostart: 'application.autoStart',
  docker: 'containerEngine.name',
  kube: 'kubernetes.enabled',
};

/** Finds the files of the user that no longer follow a setting which the profile mentions. */
export async function driftingFiles(
  files: Pick<FollowingIntegration, 'fileDrift'>,
  { settings }: PlanRequest,
): Promise<DriftingFile[]> {
  const mentioned = (part: FilesPart) => leafAt(settings, FILE_SETTINGS[part]) !== undefined;
  if (!Object.keys(FILE_SETTINGS).some((part) => mentioned(part as FilesPart))) return [];
  const drift = await files.fileDrift();
  return drift
    .filter(({ part }) => mentioned(part))
    .map(({ part, change: { file, action, what } }) => ({
      part,
      change: { path: FILE_SETTINGS[part], key: file, action, severity: 'live', reason: what },
    }));
}
