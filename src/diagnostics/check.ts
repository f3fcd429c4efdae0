import type { CheckContext } from './context.ts';

/** Categories in the order in which listings show them (api facts, 13.1). */
export const CATEGORIES = ['Networking', 'Utilities', 'Container Engine', 'Kubernetes', 'Testing'] as const;
export type Category = (typeof CATEGORIES)[number];

/** What a person can do about a finding. `description` is Markdown; commands stand in it as code. */
export interface Fix {
  description: string;
  url?: string;
}

/** One answer of a check. */
export interface Finding {
  /** Of a check with several answers: what this one is about; the id is then `CHECK:sub`. */
  sub?: string;
  passed: boolean;
  /** Markdown, one or a few sentences. */
  description: string;
  /** Empty when it passed: there is nothing to mend. */
  fixes: readonly Fix[];
}

/** Something that can be looked at. It changes nothing. */
export interface Check {
  /** For programs; also the heading of its part of `docs/diagnostics.md`, in lower case. */
  id: string;
  category: Category;
  /** Looked at before every run; false means that the question does not arise here. */
  applies(context: CheckContext): boolean;
  /**
   * Looks. No finding at all means that nothing can be said at present; an error means the same, and the last findings stay.
   * What cannot be reached is a finding that did not pass.
   */
  run(context: CheckContext, signal: AbortSignal): Promise<readonly Finding[]>;
  /** Looked at again, beside the complete runs, when the backend has reached another state. */
  followsBackend?: true;
  /** Looked at again a moment after settings have changed, when what they ask for has been done. */
  followsSettings?: true;
}

export function passed(description: string, sub?: string): Finding {
  return { ...(sub === undefined ? {} : { sub }), passed: true, description, fixes: [] };
}

export function failed(description: string, fixes: readonly Fix[] = [], sub?: string): Finding {
  return { ...(sub === undefined ? {} : { sub }), passed: false, description, fixes };
}

/** Never applies here, but is listed, because clients ask for it by name. */
export function foreignCheck(id: string, category: Category): Check {
  return { id, category, applies: () => false, run: async () => [] };
}
