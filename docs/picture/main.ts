// Draws the pictures of the README from runs of the built tool: `npm run picture`, or of a standalone file: `npm run picture -- FILE`.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { whyNoFirstMinute } from './able.ts';
import { FIRST_MINUTE, PLAN_AND_APPLY, record, type Story } from './recording.ts';
import { terminalSvg, timeless } from './svg.ts';

const [file] = process.argv.slice(2);
const tool = file === undefined ? [process.execPath, resolve('dist/rdctl.cjs')] : [resolve(file)];

/** A picture that differs in its durations only stays as it is. */
async function draw(picture: string, story: Story): Promise<void> {
  const drawn = terminalSvg(story, await record(story, tool));
  if (existsSync(picture) && timeless(readFileSync(picture, 'utf8')) === timeless(drawn)) return;
  writeFileSync(picture, drawn);
}

await draw('docs/picture/plan-and-apply.svg', PLAN_AND_APPLY);
const missing = await whyNoFirstMinute();
if (missing === undefined) await draw('docs/picture/first-minute.svg', FIRST_MINUTE);
else {
  process.stderr.write(`docs/picture/first-minute.svg stays as it is: ${missing}\n`);
  process.exitCode = 1;
}
