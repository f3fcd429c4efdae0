import type { RunOptions, RunResult } from '../../os/run.ts';
import type { LoopStatus } from '../../reconcile/contract.ts';
import type { Platform } from '../../settings/field.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import type { HostIntegration } from '../host-integration/outcome.ts';

/** Inputs of the checks, from the composition root. */
export interface CheckContext {
  platform: Platform;
  env: Readonly<Record<string, string | undefined>>;
  /** Home directory of the user. */
  home: string;
  /** Directory of this installation's data, and files with secrets. */
  data: string;
  secretFiles: readonly string[];
  /** Directory of this installation's tools, if it is on the search path. */
  binDirectory?: string;
  /** Name of this installation's docker and kubectl contexts. */
  contextName: string;
  /** `asked`: the user chose this port; otherwise it was the first free one. */
  api: { port: number; asked: boolean };
  hasCluster: boolean;
  integration: HostIntegration;
  /** URL of the page that explains the checks, where it is installed. */
  documentation?: string;
  /** Probed with HEAD to test Internet access. */
  connectivityUrl: string;
  settings(): Settings;
  status(): LoopStatus;
  kubernetesVersions(): readonly string[] | undefined;
  /** Milliseconds since the epoch. */
  now(): number;
  /** As `run` in `src/os/run.ts`. */
  run(argv: readonly string[], options: RunOptions): Promise<RunResult>;
}
