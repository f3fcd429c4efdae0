import type { Category, Fix } from './check.ts';

/** One member of `checks` in the API response (docs/diagnostics.md). */
export interface CheckRecord {
  description: string;
  passed: boolean;
  fixes: readonly Fix[];
  /** `CHECK`, or `CHECK:sub` for one of several findings. */
  id: string;
  category: Category;
  /** Muted by the user (`diagnostics.mutedChecks`). */
  mute: boolean;
  /** URL of the check's documentation; absent where none is installed. */
  documentation?: string;
}

/** Body of `GET` and `POST /v1/diagnostic_checks`. */
interface DiagnosticsReport {
  /** RFC 3339, of the last complete run; the epoch before the first. */
  last_update: string;
  checks: CheckRecord[];
}

/** The checks as the API returns them. */
export interface Diagnostics {
  categories(): readonly string[];
  /** Ids of a category, including checks that are not applicable; undefined for an unknown category. */
  ids(category: string): readonly string[] | undefined;
  /** The known findings of applicable checks. An id selects a check with all of its findings, or one finding. */
  report(filter?: { category?: string; id?: string }): DiagnosticsReport;
  /** Runs all applicable checks and reports them; concurrent callers share the next run. */
  runAll(): Promise<DiagnosticsReport>;
}
