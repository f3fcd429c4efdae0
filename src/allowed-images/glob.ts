/**
 * Whether a text matches a glob in which `*` stands for any characters, possibly none. Backtracks to the last `*` only: at most the product
 * of both lengths in steps, for any glob.
 */
export function matchesGlob(glob: string, text: string): boolean {
  let at = 0;
  let index = 0;
  let star = -1;
  let resume = 0;
  while (index < text.length) {
    if (glob[at] === '*') {
      star = at;
      at += 1;
      resume = index;
    } else if (glob[at] === text[index]) {
      at += 1;
      index += 1;
    } else if (star !== -1) {
      at = star + 1;
      resume += 1;
      index = resume;
    } else return false;
  }
  while (glob[at] === '*') at += 1;
  return at === glob.length;
}
