import { resolve } from 'node:path';

const file = process.env.RDCTL_TEST_BINARY;

/** The tool under test: what `npm run build` makes, or the standalone file that `RDCTL_TEST_BINARY` names. */
export const TOOL = resolve(file || 'dist/rdctl.cjs');

/** Whether the tool is a program by itself. What tests look for in `dist/` is not there then. */
export const isStandalone = Boolean(file);

/** Program and first arguments that run the tool at a path. */
export function commandOf(entry: string = TOOL): readonly [string, ...string[]] {
  return /\.cjs$/.test(entry) ? [process.execPath, entry] : [entry];
}
