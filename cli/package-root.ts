import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Io } from './command.ts';

/** The directory of this package, found from the program that runs; absent when it runs outside of one. */
export function packageRoot({ self }: Io): string | undefined {
  const script = self.at(-1);
  if (script === undefined || !existsSync(script)) return undefined;
  for (let at = dirname(realpathSync(script)); ; at = dirname(at)) {
    if (existsSync(join(at, 'package.json')) && existsSync(join(at, 'schemas', 'profile.json'))) return at;
    if (at === dirname(at)) return undefined;
  }
}
