import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryDirectory } from './temp-home.ts';

/** What the build of the standalone file reads, in another place: packages as installed for those who only use it. */
export function copyOfTheSource(folder = temporaryDirectory()): string {
  const copy = join(folder, 'elsewhere');
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const packages = Object.entries<{ dev?: boolean }>(lock.packages).flatMap(([folder, { dev }]) =>
    folder && !dev ? [folder] : [],
  );
  for (const each of ['cli', 'src', 'profiles', 'schemas', 'package.json', 'tsconfig.json', 'release', ...packages]) {
    mkdirSync(dirname(join(copy, each)), { recursive: true });
    cpSync(each, join(copy, each), { recursive: true });
  }
  return copy;
}
