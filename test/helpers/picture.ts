import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { record, type Story } from '../../docs/picture/recording.ts';
import { terminalSvg, timeless } from '../../docs/picture/svg.ts';

/** Runs the commands of a picture and compares; `tool` is the program and its first arguments. */
export async function checkPicture(picture: string, story: Story, tool: readonly string[]): Promise<void> {
  const shots = await record(story, tool);
  const drawn = readFileSync(picture, 'utf8');
  expect(timeless(drawn)).toBe(timeless(terminalSvg(story, shots)));
  expect(readFileSync('README.md', 'utf8')).toContain(`](${picture})`);

  const words = (text: string) => text.replace(/\d[\d.]* m?s\b/g, 'TIME').replace(/\s/g, '');
  const texts = [...drawn.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text = '']) => text).join('');
  const printed = shots.map(({ command, printed }) => `${story.prompt}${command}${printed}`).join('');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colors, which the picture has as classes
  expect(words(texts)).toBe(words(printed.replace(/\u001b\[\d*m/g, '')));
}
