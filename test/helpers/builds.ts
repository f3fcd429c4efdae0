import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** A directory for what the files of one run build together. */
    builds: string;
  }
}

/** For the whole run, as vitest calls it. */
export function setup({ provide }: TestProject): () => void {
  const builds = mkdtempSync(join(tmpdir(), 'rdctl-builds-'));
  provide('builds', builds);
  return () => rmSync(builds, { recursive: true, force: true });
}
