import * as homeScripts from '../mounts/scripts.ts';
import * as shellScripts from '../scripts.ts';
import * as frozenScripts from './scripts.ts';

/** Every text in the modules whose scripts make, in the guest, something that a frozen state keeps, or that a resume relies on. */
export const GUEST_SCRIPTS: readonly string[] = [frozenScripts, shellScripts, homeScripts].flatMap((module) =>
  Object.entries(module)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, value]) => (typeof value === 'string' ? [value] : [])),
);
