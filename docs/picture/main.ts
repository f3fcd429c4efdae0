// Draws the picture of the README from a run of the built tool: `npm run picture`.
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { record } from './recording.ts';
import { terminalSvg } from './svg.ts';

writeFileSync(
  'docs/picture/plan-and-apply.svg',
  terminalSvg(await record([process.execPath, resolve('dist/rdctl.cjs')])),
);
