import { basename } from 'node:path';
import type { Part } from '../deployment/part.ts';

/** Which of the two profiles a file is by its name: `locked.json`, `io.rancherdesktop.profile.defaults.plist`. */
export function partOfName(label: string): Part | undefined {
  const word = /(?:^|[._-])(locked|defaults)\.[a-z]+$/i.exec(basename(label.replaceAll('\\', '/')))?.[1]?.toLowerCase();
  return word === 'locked' || word === 'defaults' ? word : undefined;
}
