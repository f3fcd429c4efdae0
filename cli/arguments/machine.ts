import { homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import type { Io } from '../command.ts';

/**
 * Finds access to the virtual machine of this home, from records on this disk alone.
 * @param instead advice for the case that this computer is the machine, as a sentence.
 * @throws RdError `ERR_NOT_READY` if there is no machine to connect to.
 */
export async function machineOf(io: Io, instead: string) {
  const { backendAccess } = await import('../../src/drivers/backend-access.ts');
  const way = await backendAccess(homeOf(io));
  if (way.in === 'machine') return way;
  if (way.in === 'host') {
    throw new RdError('ERR_NOT_READY', 'The machine is this computer: the host driver uses no virtual machine.', {
      advice: instead,
    });
  }
  if (way.simulated) {
    throw new RdError('ERR_NOT_READY', 'The desktop is simulated, so it has no machine.', {
      advice: 'Use another home with a virtual machine: RDCTL_HOME=DIR rdctl start --driver qemu',
    });
  }
  throw new RdError('ERR_NOT_READY', 'The virtual machine of this home is not running.', {
    advice: "Start it with 'rdctl start', and wait with 'rdctl start --wait'.",
  });
}
