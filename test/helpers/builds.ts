import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** A directory for what the test files of one run build and share. */
    builds: string;
  }
}

/** Called by vitest for the whole run. */
export function setup({ provide }: TestProject): () => void {
  const builds = mkdtempSync(join(tmpdir(), 'rdctl-builds-'));
  provide('builds', builds);
  return () => rmSync(builds, { recursive: true, force: true });
}
