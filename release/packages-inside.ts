/** The part that we read of what esbuild and the compiler of the runtime both write about a build. */
export interface Metafile {
  outputs: Record<string, { inputs: Record<string, { bytesInOutput: number }> }>;
}

const FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;

/** Folders of the packages that are inside: of those with a byte in the output, not of all that were read. Sorted. */
export function packagesInside(builds: readonly Metafile[]): string[] {
  const inside = new Set<string>();
  for (const { outputs } of builds) {
    for (const { inputs } of Object.values(outputs)) {
      for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
        const folder = bytesInOutput > 0 && FOLDER.exec(path)?.[0];
        if (folder) inside.add(folder);
      }
    }
  }
  return [...inside].sort();
}
