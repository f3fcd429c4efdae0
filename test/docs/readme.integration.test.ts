import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtTool } from '../helpers/built-tool.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { checkAll, runner, shown } from '../helpers/transcripts.ts';

const tool = builtTool();

test('the first minute of the README works as shown', async () => {
  const directory = temporaryDirectory();
  cpSync('examples', join(directory, 'examples'), { recursive: true });
  // Installing, and building what is installed, are tests of their own.
  const simulated = shown('README.md', '## The first minute').filter(({ command }) => command.startsWith('rdctl'));
  expect(simulated).toHaveLength(3);
  try {
    await checkAll(simulated, directory, tool.entry());
  } finally {
    await runner(directory, tool.entry())('rdctl shutdown');
  }
});
