import type { MachineConfinement } from '../../drivers/driver.ts';
import { defined } from '../../json.ts';
import type { RunOptions, RunResult } from '../../os/run.ts';
import type { LoopStatus } from '../../reconcile/contract.ts';
import type { Platform } from '../../settings/field.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import type { HostIntegration } from '../host-integration/outcome.ts';

/** Categories in display order. */
export const CATEGORIES = ['Networking', 'Utilities', 'Container Engine', 'Kubernetes', 'Testing'] as const;
export type Category = (typeof CATEGORIES)[number];

/** A fix for a finding. `description` is Markdown, with commands as code. */
export interface Fix {
  description: string;
  url?: string;
}

/** One result of a check. */
export interface Finding {
  /** Subject of one of several findings of a check; the id is then `CHECK:sub`. */
  sub?: string;
  passed: boolean;
  /** Markdown, one or a few sentences. */
  description: string;
  /** Possible fixes; empty for a finding that passed. */
  fixes: readonly Fix[];
}

/** A diagnostic check. Read-only. */
export interface Check {
  /** Stable id for scripts; in lower case, it is the heading of the check's section in `docs/diagnostics.md`. */
  id: string;
  category: Category;
  /** Whether the check is applicable; evaluated before every run. */
  applies(context: CheckContext): boolean;
  /**
   * Runs the check. Without findings, or on an error, the result is unknown, and the previous findings stay. An unreachable target is a failed
   * finding.
   */
  run(context: CheckContext, signal: AbortSignal): Promise<readonly Finding[]>;
  /** Set to rerun the check when the state of the backend changes. */
  followsBackend?: true;
  /** Set to rerun the check shortly after a settings change, once it has been applied. */
  followsSettings?: true;
}

export function passed(description: string, sub?: string): Finding {
  return { ...defined({ sub }), passed: true, description, fixes: [] };
}

export function failed(description: string, fixes: readonly Fix[] = [], sub?: string): Finding {
  return { ...defined({ sub }), passed: false, description, fixes };
}

/** Returns a check that is never applicable, but listed, because clients request it by name. */
export function foreignCheck(id: string, category: Category): Check {
  return { id, category, applies: () => false, run: async () => [] };
}

/** Inputs of the checks, from the composition root. */
export interface CheckContext {
  platform: Platform;
  env: Readonly<Record<string, string | undefined>>;
  /** Home directory of the user. */
  home: string;
  /** Directory of this installation's data, which contains files with secrets. */
  data: string;
  secretFiles: readonly string[];
  /** Directory of this installation's tools, if it is on the search path. */
  binDirectory?: string;
  /** Name of this installation's docker and kubectl contexts. */
  contextName: string;
  /** The API's port. `requested` means that the user chose it; otherwise it was the first free one. */
  api: { port: number; requested: boolean };
  hasCluster: boolean;
  /** Returns the confinement of a running machine, as `Driver.confinement` does. */
  confinement?(): Promise<MachineConfinement>;
  integration: HostIntegration;
  /** URL of the page that explains the checks, if it is installed. */
  documentation?: string;
  /** URL that a HEAD request probes to test Internet access. */
  connectivityUrl: string;
  settings(): Settings;
  status(): LoopStatus;
  kubernetesVersions(): readonly string[] | undefined;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs a program, with the contract of `run` in `src/os/run.ts`. */
  run(argv: readonly string[], options: RunOptions): Promise<RunResult>;
}

/** One member of `checks` in the API response (docs/diagnostics.md). */
export interface CheckRecord {
  description: string;
  passed: boolean;
  fixes: readonly Fix[];
  /** `CHECK`, or `CHECK:sub` for one of several findings. */
  id: string;
  category: Category;
  /** Whether the user muted it (`diagnostics.mutedChecks`). */
  mute: boolean;
  /** URL of the check's documentation; absent if none is installed. */
  documentation?: string;
}

/** Body of `GET` and `POST /v1/diagnostic_checks`. */
interface DiagnosticsReport {
  /** Time of the last complete run in RFC 3339; the epoch before the first. */
  last_update: string;
  checks: CheckRecord[];
}

/** The checks as the API returns them. */
export interface Diagnostics {
  categories(): readonly string[];
  /** Returns the ids of a category, including checks that are not applicable; undefined for an unknown category. */
  ids(category: string): readonly string[] | undefined;
  /** Reports the known findings of applicable checks. An id selects a check with all of its findings, or one finding. */
  report(filter?: { category?: string; id?: string }): DiagnosticsReport;
  /** Runs all applicable checks and reports them; concurrent callers share the next run. */
  runAll(): Promise<DiagnosticsReport>;
}
