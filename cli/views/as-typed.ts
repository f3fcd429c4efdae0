import { COMMANDS } from '../commands.ts';

/** Where a command stands in text: at the start of an indented line, after a colon, in quotes, or behind another command. */
const COMMAND = new RegExp(
  `(?<=^ +|[\`']|[:;] +|sudo |&& |=\\S+ )rdctl(?= (?:--help|COMMAND|…|${COMMANDS.map(({ name }) => name).join('|')})(?![\\w-])|\`)`,
  'gm',
);

/** Text for people, with the commands to copy as this tool is called here: `./rdctl up`, where no `rdctl` is on the `PATH`. */
export function asTyped(text: string, called: string): string {
  const shown = /^[\w./~+-]+$/.test(called) ? called : `'${called.replaceAll("'", "'\\''")}'`;
  return text.replace(COMMAND, () => shown);
}
