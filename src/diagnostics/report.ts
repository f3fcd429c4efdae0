import type { Category, Fix } from './check.ts';

/** One member of `checks` (api facts, 13.2). */
export interface CheckRecord {
  description: string;
  passed: boolean;
  fixes: readonly Fix[];
  /** `CHECK`, or `CHECK:sub` for one of several answers. */
  id: string;
  category: Category;
  /** A person does not want to hear of it (`diagnostics.mutedChecks`). */
  mute: boolean;
  /** Address of what explains the check; absent where no documentation is installed. */
  documentation?: string;
}

/** Body of `GET` and `POST /v1/diagnostic_checks`. */
interface DiagnosticsReport {
  /** RFC 3339, of the last complete run; the epoch before the first. */
  last_update: string;
  checks: CheckRecord[];
}

/** The checks as the API sees them. */
export interface Diagnostics {
  categories(): readonly string[];
  /** Ids of a category, those that do not apply here included; nothing for a category that is not there. */
  ids(category: string): readonly string[] | undefined;
  /** What is known, of checks that apply. An id is that of a check, with all of its answers, or of one answer. */
  report(filter?: { category?: string; id?: string }): DiagnosticsReport;
  /** Runs all checks that apply and reports them; callers that come while one run is under way share the next. */
  runAll(): Promise<DiagnosticsReport>;
}
