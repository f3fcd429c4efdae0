import { test } from 'vitest';
import { PLAN_AND_APPLY } from '../../docs/picture/recording.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { checkPicture } from '../helpers/picture.ts';
import { commandOf } from '../helpers/tool-program.ts';

const tool = builtTool();

test('the picture of a plan shows what the tool prints (update it with `npm run picture`)', async () => {
  await checkPicture('docs/picture/plan-and-apply.svg', PLAN_AND_APPLY, commandOf(tool.entry()));
});
