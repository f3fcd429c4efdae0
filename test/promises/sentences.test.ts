import { describe, expect, test } from 'vitest';
import { markdownPromises } from './sentences.ts';

describe('in Markdown, promises are found', () => {
  test('in paragraphs and list items, across lines and without markup', () => {
    const text = `# It never counts as a heading

It **never** sends a [password](x.md), \`not. Even\` once; the
rest stays. This says something else. *Only* here.

- Files stay
  as they are.
- 1 of them goes.
1. Nothing happens.
> Always.
`;
    expect(markdownPromises(text)).toEqual([
      'It never sends a password, not. Even once; the rest stays.',
      'Only here.',
      'Files stay as they are.',
      'Nothing happens.',
      'Always.',
    ]);
  });

  test('in cells, with their row and, in a wide table, their column', () => {
    const text = `Before it.
| What never counts | Then |
| --- | --- |
| a kill | nothing \`a|b\` changes. It goes on. |
| never a label | on |

| What | There | Here |
| --- | --- | --- |
| \`__x__\` | always | a \\| refused |
`;
    expect(markdownPromises(text)).toEqual([
      'a kill › nothing a|b changes.',
      '__x__ › There: always',
      '__x__ › Here: a | refused',
    ]);
  });

  test('but not in code, in parts of other words, or twice', () => {
    const text =
      'Text.\n\n```\nnothing\n```\n\n- x\n\n  ```console\n  never\n  ```\n\nA read-only backup. `--only` once.\n\nNever.\n\nNever.';
    expect(markdownPromises(text)).toEqual(['Never.']);
  });
});
