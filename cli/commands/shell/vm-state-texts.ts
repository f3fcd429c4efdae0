import { COMPATIBLE } from '../../../src/product.ts';
import type { Io } from '../../command.ts';

const PRODUCT_VM = `The ${COMPATIBLE.productName} VM needs to be`;
const TO_RUN = "in order to execute 'rdctl shell', but it";
/** No service is running. */
export const NOT_RUNNING = `${PRODUCT_VM} running ${TO_RUN} currently is not.`;

/** @param state Rancher Desktop's name for it: `Stopped`. */
export function notInState(state: string): string {
  return `${PRODUCT_VM} in state "Running" ${TO_RUN} is current in state "${state}".`;
}

/** Sentences about the state have no `Error:` prefix; scripts match them. */
export function refuse(sentence: string, io: Io): number {
  io.err(`${sentence}\nStart it with 'rdctl start', and wait with 'rdctl start --wait'.\n`);
  return 1;
}
