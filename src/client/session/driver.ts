import { RdError } from '../../errors.ts';
import { DRIVER_NAMES } from '../../product.ts';

/** Throws `ERR_WRONG_TARGET` for a driver other than the used one: on the same state it would be another desktop. */
export function refuseOtherDriver(used: string | undefined, asked: string | undefined): void {
  if (asked === undefined || asked === '' || used === undefined || asked === used) return;
  throw new RdError('ERR_WRONG_TARGET', `The driver here is ${used}, not ${asked}.`, {
    advice: `${used === 'simulated' ? 'Remove the simulation with `rdctl reset --factory`' : 'Leave --driver out'}, or use another home: RDCTL_HOME=DIR rdctl … --driver ${asked}`,
  });
}

/** Rejects an unknown driver before anything is created for it. Throws `ERR_USAGE`. */
export function checkDriver(flag: string | undefined, env: Readonly<Record<string, string | undefined>>): void {
  const name = flag ?? env.RDCTL_DRIVER;
  if (name === undefined || name === '' || DRIVER_NAMES.some((known) => known === name)) return;
  const source = flag === undefined ? ' (RDCTL_DRIVER)' : '';
  throw new RdError('ERR_USAGE', `there is no driver ${JSON.stringify(name)}${source}`, {
    advice: `Available drivers: ${DRIVER_NAMES.join(', ')}.`,
  });
}
