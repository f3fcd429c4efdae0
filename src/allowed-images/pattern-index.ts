import type { Pattern } from './pattern.ts';

/** Patterns by what they name, so that an image is not compared with each of thousands. */
export interface PatternIndex {
  /** All patterns that may match something in this repository, and perhaps others. */
  near(registry: string, repository: string): Pattern[];
  /** Characters of the patterns that are near every repository. */
  effort: number;
}

export function indexPatterns(patterns: readonly Pattern[]): PatternIndex {
  const exact = new Map<string, Pattern[]>();
  const below = new Map<string, Pattern>();
  const anywhere: Pattern[] = [];
  let effort = 0;
  for (const pattern of patterns) {
    const key = [pattern.registry, ...pattern.parts].join('/');
    if (key.includes('*')) {
      anywhere.push(pattern);
      effort += key.length + 1;
      continue;
    }
    // Below a path there are no tags, so one pattern says it all.
    if (pattern.below) below.set(key, pattern);
    else if (!exact.get(key)?.push(pattern)) exact.set(key, [pattern]);
  }
  return {
    effort,
    near(registry, repository) {
      const found = [...(exact.get(`${registry}/${repository}`) ?? [])];
      let stem = registry;
      for (const part of repository.split('/')) {
        const pattern = below.get(stem);
        if (pattern) found.push(pattern);
        stem = `${stem}/${part}`;
      }
      return anywhere.length === 0 ? found : found.concat(anywhere);
    },
  };
}
