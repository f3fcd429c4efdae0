import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A package inside of what we ship, as the lock file and its own folder describe it. */
export interface InsidePackage {
  folder: string;
  name: string;
  version: string;
  /** SPDX expression. */
  license: string;
  /** Subresource integrity of its archive. */
  integrity: string;
  /** Its license and notice files, as they are. */
  texts: readonly string[];
}

/** Packages that ship no license file, and the file of theirs that names the license, which is MIT; its text is added. */
const SAID_ELSEWHERE: Readonly<Record<string, string>> = { 'abstract-logging': 'Readme.md' };

const LICENSE_FILE = /^(?:licen[cs]e|copying|copyright|notice)/i;

/** @throws Error for a package that the lock file does not have, or whose license nobody can read. */
export function describe(folders: readonly string[]): InsidePackage[] {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  return folders.map((folder) => {
    const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const entry = lock.packages[folder];
    if (!entry?.version || !entry.integrity) throw new Error(`package-lock.json does not have ${folder}`);
    if (!entry.license) throw new Error(`package-lock.json does not name the license of ${folder}`);
    const files = readdirSync(folder).filter((file) => LICENSE_FILE.test(file));
    const elsewhere = SAID_ELSEWHERE[name];
    if (files.length === 0 && elsewhere !== undefined) files.push(elsewhere);
    if (files.length === 0) throw new Error(`${folder} has no license file; add where it says its license`);
    const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim());
    if (elsewhere !== undefined) {
      if (entry.license !== 'MIT') throw new Error(`${folder} is under ${entry.license} now; add the text of that`);
      texts.push(readFileSync('release/license-texts/MIT.txt', 'utf8').trim());
    }
    return { folder, name, version: entry.version, license: entry.license, integrity: entry.integrity, texts };
  });
}
