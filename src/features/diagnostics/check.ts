import type { CheckContext } from './context.ts';

/** Categories in display order. */
export const CATEGORIES = ['Networking', 'Utilities', 'Container Engine', 'Kubernetes', 'Testing'] as const;
export type Category = (typeof CATEGORIES)[number];

/** A fix for a finding. `description` is Markdown with commands as code. */
export interface Fix {
  description: string;
  url?: string;
}

/** One result of a check. */
export interface Finding {
  /** For a check with several findings: its subject; the id is then `CHECK:sub`. */
  sub?: string;
  passed: boolean;
  /** Markdown, one or a few sentences. */
  description: string;
  /** Empty for a finding that passed. */
  fixes: readonly Fix[];
}

/** A diagnostic check. Read-only. */
export interface Check {
  /** Stable id for scripts; also the heading of its part of `docs/diagnostics.md`, in lower case. */
  id: string;
  category: Category;
  /** Evaluated before every run; false means not applicable. */
  applies(context: CheckContext): boolean;
  /**
   * Runs the check. Without findings, or on an error, the result is unknown, and the last findings stay. An unreachable target is a failed
   * finding.
   */
  run(context: CheckContext, signal: AbortSignal): Promise<readonly Finding[]>;
  /** Also rerun when the state of the backend changes. */
  followsBackend?: true;
  /** Also rerun shortly after a settings change, once it has been applied. */
  followsSettings?: true;
}

export function passed(description: string, sub?: string): Finding {
  return { ...(sub === undefined ? {} : { sub }), passed: true, description, fixes: [] };
}

export function failed(description: string, fixes: readonly Fix[] = [], sub?: string): Finding {
  return { ...(sub === undefined ? {} : { sub }), passed: false, description, fixes };
}

/** Never applicable, but listed, because clients request it by name. */
export function foreignCheck(id: string, category: Category): Check {
  return { id, category, applies: () => false, run: async () => [] };
}
