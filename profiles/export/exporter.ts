import type { Platform } from '../../src/settings/field.ts';
import type { Part } from '../deployment/part.ts';
import type { DeploymentTree } from '../deployment/tree.ts';

/** Root of the registry that a profile goes below: all users of the computer, or the present one. */
export type Hive = 'hklm' | 'hkcu';

export interface ExportOptions {
  part: Part;
  /** Used by `reg` alone. */
  hive: Hive;
}

/** Writes a deployment profile in one format. */
export interface Exporter {
  /** As it is given to `--output`. */
  name: string;
  /** The system whose application reads it. */
  platform: Platform;
  /** The file as the application or its administrator's tools look for it: `locked.json`. Those of the two hives differ. */
  fileName(part: Part, hive: Hive): string;
  /**
   * The text of the file.
   * @throws RdError `ERR_PROFILE_INVALID` with the path of everything that the format cannot hold, and why; nothing is replaced.
   */
  text(tree: Pick<DeploymentTree, 'members'>, options: ExportOptions): string;
}
