import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Address of a page of the documentation that was installed with the program, whose command is `self`; absent where the program
 * is alone.
 */
export function documentationPage(name: string, self: readonly string[] = []): string | undefined {
  const script = self.at(-1);
  if (script === undefined || !existsSync(script)) return undefined;
  const page = join(dirname(realpathSync(script)), '..', 'docs', name);
  return existsSync(page) ? pathToFileURL(page).href : undefined;
}
