import { existsSync, readFileSync } from 'node:fs';

/** A quoted string followed by a function: a title of `test`, `test.each` or `describe`. */
const TITLE = /(['"`])((?:\\.|(?!\1)[^\\])*)\1,\s*(?:\{[^{}]*\},\s*)?(?:async\s*)?(?:\(|\w+\s*=>)/g;

const titles = new Map<string, string[]>();

/** Whether a test exists that is named as `FILE › part of its title`. */
export function hasTest(named: string): boolean {
  const [file = '', ...title] = named.split(' › ');
  const part = title.join(' › ');
  return part.trim().length > 3 && titlesOf(file).some((each) => each.includes(part));
}

function titlesOf(file: string): string[] {
  const known = titles.get(file);
  if (known) return known;
  const text = file.startsWith('test/') && existsSync(file) ? readFileSync(file, 'utf8') : '';
  const found = [...text.matchAll(TITLE)].map(([, , title = '']) => title.replace(/\\(.)/g, '$1'));
  titles.set(file, found);
  return found;
}
