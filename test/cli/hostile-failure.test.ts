import { expect, test } from 'vitest';
import { reportFailure } from '../../cli/errors.ts';
import { RdError } from '../../src/errors.ts';

test('untrusted text in an error cannot send control sequences to the terminal', () => {
  let text = '';
  const io = { out: () => undefined, err: (data: string) => (text += data), signal: new AbortController().signal };
  const evil = 'no \u001b[2J\u009b31m\u202e\rimage';
  const error = new RdError('ERR_NOT_FOUND', evil, { details: [evil], advice: evil, cause: new Error(`${evil}!`) });
  reportFailure({ error, command: undefined, verbose: true }, io as never);
  reportFailure({ error: new Error(evil), command: undefined, verbose: false }, io as never);
  expect(text).toContain('Error: no \\u001b[2J\\u009b31m\\u202e\\u000dimage\n');
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
});
