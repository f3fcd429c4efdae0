import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fold } from '../../cli/views/fold.ts';

const FOLDED: readonly (readonly [name: string, text: string, folded: string])[] = [
  [
    'at words',
    'The service is running, and nothing of it is in the way.',
    'The service is running, and nothing of\nit is in the way.',
  ],
  [
    'below the text of a list',
    '  * the container web, which is running now',
    '  * the container web, which is running\n    now',
  ],
  [
    'below an indent',
    '      restart: stops moby and starts containerd',
    '      restart: stops moby and starts\n      containerd',
  ],
  [
    'behind a name',
    'warning: No service is running, nothing was asked.',
    'warning: No service is running, nothing\n  was asked.',
  ],
  [
    'beside a label',
    'State     DISABLED (the engine runs, no Kubernetes)',
    'State     DISABLED (the engine runs, no\n          Kubernetes)',
  ],
  [
    'around a command in backticks',
    'Nothing is kept here. Keep one with `rdctl apply --keep`.',
    'Nothing is kept here. Keep one with\n`rdctl apply --keep`.',
  ],
  [
    'before a command after a colon',
    'There is none. Create one with: rdctl token create --name NAME --scope read',
    'There is none. Create one with:\nrdctl token create --name NAME --scope read',
  ],
  [
    'before a command of another program',
    'host: it is not installed; fix: sudo apt-get update && sudo apt-get install docker.io',
    'host: it is not installed; fix:\n  sudo apt-get update && sudo apt-get install docker.io',
  ],
  [
    'a message that begins with our name',
    'Error: rdctl needs a version of dockerd that is newer',
    'Error: rdctl needs a version of dockerd\n  that is newer',
  ],
  [
    'in color, which has no width',
    '\u001b[33mwarning:\u001b[39m this line has thirty-nine of.\n\u001b[33mwarning:\u001b[39m this line has one more than forty.',
    '\u001b[33mwarning:\u001b[39m this line has thirty-nine of.\n\u001b[33mwarning:\u001b[39m this line has one more than\n  forty.',
  ],
];

test.each(FOLDED)('%s', (_, text, folded) => {
  expect(fold(`${text}\n`, 40)).toBe(`${folded}\n`);
});

test.each([
  ['a table', '2026-11-25 23:16:35  set  converged  memory: 6 → 5'],
  ['JSON', '  "message": "the container engine is not running",'],
  ['an example', '  rdctl set --virtual-machine.memory-in-gb 5'],
  ['a fix', '        fix: sudo apt-get update && sudo apt-get install docker.io'],
  ['a stack trace', '    at Object.run (/usr/lib/rdctl/process.cjs:12:34)'],
  ['a path', '/home/developer/.local/share/rdctl/config/settings.json'],
  ['a line that is redrawn', '\r\u001b[2K  downloading the image of the machine now'],
])('%s stays as it is', (_, line) => {
  expect(fold(`${line}\n`, 40)).toBe(`${line}\n`);
});

test('what has no end yet stays as it is', () => {
  const drawn = 'a line that is drawn, and cleared later on';
  expect(fold(drawn, 40)).toBe(drawn);
});

test('not below 40 columns, and not beyond 100', () => {
  const text = `${'word '.repeat(60).trim()}\n`;
  const longest = (columns: number) =>
    Math.max(
      ...fold(text, columns)
        .split('\n')
        .map(({ length }) => length),
    );
  expect([10, 60, 250].map(longest)).toEqual([39, 59, 99]);
});

test('keeps every word in its order, and each line within the width unless a word is longer', () => {
  const words = fc.array(fc.stringMatching(/^[a-z.,;()]{1,30}$/), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(
      fc.constantFrom('', '  ', '- ', '  ~ ', 'warning: '),
      words,
      fc.integer({ min: 40, max: 100 }),
      (head, list, width) => {
        const text = `${head}${list.join(' ')}\n`;
        const folded = fold(text, width);
        expect(folded.split(/\s+/)).toEqual(text.split(/\s+/));
        for (const line of folded.split('\n')) expect(line.length).toBeLessThanOrEqual(width);
      },
    ),
  );
});
