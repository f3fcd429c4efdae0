import { expect, test } from 'vitest';
import { whyNoFirstMinute } from '../../docs/picture/able.ts';
import { FIRST_MINUTE } from '../../docs/picture/recording.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { checkPicture } from '../helpers/picture.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { commandOf } from '../helpers/tool-program.ts';

const tool = builtTool();
const reason = await whyNoRealEngine();

test.skipIf(reason !== undefined)(
  'the picture of the first minute shows what the tool prints with a real dockerd (update it with `npm run picture`)',
  async () => {
    expect(await whyNoFirstMinute()).toBeUndefined();
    await checkPicture('docs/picture/first-minute.svg', FIRST_MINUTE, commandOf(tool.entry()));
  },
);
