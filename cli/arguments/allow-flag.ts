import type { Loss } from '../../src/plan/change.ts';
import { LOSSES } from '../../src/plan/losses.ts';
import { wordList } from '../../src/settings/printable.ts';
import type { Flag } from '../command.ts';
import { usage } from './values.ts';

/** The flag `--allow`: consent to losses by name. */
export const ALLOW_FLAG = {
  type: 'strings',
  summary: `Consent to one data loss (${LOSSES.join(', ')}); repeatable`,
  offers: LOSSES,
  placeholder: 'ITEM',
} as const satisfies Flag;

/** Returns the losses that `--allow` names. @throws RdError `ERR_USAGE` for another name. */
export function allowedBy(names: readonly string[] = []): Loss[] {
  return names.map((name) => {
    const loss = LOSSES.find((each) => each === name);
    if (loss) return loss;
    throw usage(`--allow does not know ${JSON.stringify(name)}`, `It takes ${wordList(LOSSES)}.`);
  });
}
