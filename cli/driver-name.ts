import { RdError } from '../src/errors.ts';
import { DRIVER_NAMES } from '../src/product.ts';
import { usage } from './arguments.ts';
import { quote } from './literals.ts';

/** Of commands that only look. */
export const DRIVER_FLAG = {
  type: 'string',
  summary: 'Driver to plan for where no service has run yet',
  placeholder: 'NAME',
} as const;

/** The driver is chosen once; another one on the same state would be another desktop. Throws `ERR_WRONG_TARGET`. */
export function refuseOtherDriver(used: string | undefined, asked: string | undefined): void {
  if (asked === undefined || asked === '' || used === undefined || asked === used) return;
  throw new RdError('ERR_WRONG_TARGET', `The driver here is ${used}, not ${asked}.`, {
    advice: `Leave --driver out, or use another home: RDCTL_HOME=DIR rdctl … --driver ${asked}`,
  });
}

/** Refuses a driver that does not exist, before anything is created for it. Throws `ERR_USAGE`. */
export function checkDriver(flag: string | undefined, env: Readonly<Record<string, string | undefined>>): void {
  const name = flag ?? env.RDCTL_DRIVER;
  if (name === undefined || name === '' || DRIVER_NAMES.some((known) => known === name)) return;
  const source = flag === undefined ? ' (RDCTL_DRIVER)' : '';
  throw usage(`there is no driver ${quote(name)}${source}`, `Drivers are: ${DRIVER_NAMES.join(', ')}.`);
}
