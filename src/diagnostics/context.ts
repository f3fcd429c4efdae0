import type { HostIntegration } from '../host-integration/outcome.ts';
import type { RunOptions, RunResult } from '../process/run.ts';
import type { LoopStatus } from '../reconcile/status.ts';
import type { Platform } from '../settings/field.ts';
import type { Settings } from '../settings/settings.gen.ts';

/** Everything that a check may look at, given by the composition root. */
export interface CheckContext {
  platform: Platform;
  env: Readonly<Record<string, string | undefined>>;
  /** Home directory of the user. */
  home: string;
  /** Directory of this installation's data, and files in which secrets are. */
  data: string;
  secretFiles: readonly string[];
  /** Where the tools of this installation are, if it puts them on the search path. */
  binDirectory?: string;
  /** Name of the docker context, and of the kubectl context, of this installation. */
  contextName: string;
  /** `asked`: somebody chose this port; otherwise it was the first free one. */
  api: { port: number; asked: boolean };
  hasCluster: boolean;
  integration: HostIntegration;
  /** Address of the page that explains the checks, where it is installed. */
  documentation?: string;
  /** Asked with HEAD to learn whether the Internet is there. */
  connectivityUrl: string;
  settings(): Settings;
  status(): LoopStatus;
  kubernetesVersions(): readonly string[] | undefined;
  /** Milliseconds since the epoch. */
  now(): number;
  /** As `run` of `src/process`. */
  run(argv: readonly string[], options: RunOptions): Promise<RunResult>;
}
