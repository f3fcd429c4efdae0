import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { record } from '../../docs/picture/recording.ts';
import { terminalSvg } from '../../docs/picture/svg.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { commandOf } from '../helpers/tool-program.ts';

const PICTURE = 'docs/picture/plan-and-apply.svg';
const tool = builtTool();

/** Durations differ from run to run. */
const timeless = (text: string) => text.replace(/\d[\d.]* m?s\b/g, 'TIME');

test('the picture in the README shows what the tool prints (update it with `npm run picture`)', async () => {
  const shots = await record(commandOf(tool.entry()));
  const picture = readFileSync(PICTURE, 'utf8');
  expect(timeless(picture)).toBe(timeless(terminalSvg(shots)));
  expect(readFileSync('README.md', 'utf8')).toContain(`](${PICTURE})`);

  const words = (text: string) => timeless(text).replace(/\s/g, '');
  const drawn = [...picture.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text = '']) => text).join('');
  const printed = shots.map(({ command, printed }) => `$${command}${printed}`).join('');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colors, which the picture has as classes
  expect(words(drawn)).toBe(words(printed.replace(/\u001b\[\d*m/g, '')));
});
