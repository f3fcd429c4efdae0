import { COMMANDS } from '../commands.ts';

/** Matches commands in text: at the start of an indented line, after a colon, in quotes, or behind another command. */
const COMMAND = new RegExp(
  `(?<=^ +|[\`']|[:;] +|sudo |&& |=\\S+ )rdctl(?= (?:--help|COMMAND|…|${COMMANDS.map(({ name }) => name).join('|')})(?![\\w-])|\`)`,
  'gm',
);

/** Rewrites commands in text for people to the name by which this tool is called here: `./rdctl up`, if no `rdctl` is on the `PATH`. */
export function asTyped(text: string, called: string): string {
  const shown = /^[\w./~+-]+$/.test(called) ? called : `'${called.replaceAll("'", "'\\''")}'`;
  return text.replace(COMMAND, () => shown);
}
