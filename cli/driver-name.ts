import { DRIVER_NAMES } from '../src/product.ts';
import { usage } from './arguments.ts';
import { quote } from './literals.ts';

/** Refuses a driver that does not exist, before anything is created for it. Throws `ERR_USAGE`. */
export function checkDriver(flag: string | undefined, env: Readonly<Record<string, string | undefined>>): void {
  const name = flag ?? env.RDCTL_DRIVER;
  if (name === undefined || name === '' || DRIVER_NAMES.some((known) => known === name)) return;
  const source = flag === undefined ? ' (RDCTL_DRIVER)' : '';
  throw usage(`there is no driver ${quote(name)}${source}`, `Drivers are: ${DRIVER_NAMES.join(', ')}.`);
}
