import { messageOf, RdError } from '../../../../errors.ts';
import type { DriverContext, OpenHostPorts, PublishedPort } from '../../../driver.ts';
import type { Connection } from '../guest.ts';
import { type HostSockets, openPorts } from './open-ports.ts';
import { FILTER_SCRIPT, filterRules } from './rules.ts';

/** Closes the loopback interface of this host to the guest, except for some ports. It holds against all but root in the guest. */
export interface HostPortFilter {
  /**
   * Sets the filter.
   * @param allowed ports and ranges that are open in addition to those that this host offers to everyone.
   * @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`.
   */
  set(allowed: readonly string[], signal: AbortSignal): Promise<void>;
  /** Sets the filter unless it is already correct. Returns the open ports, or the reason that they are not correct, as a clause. */
  follow(allowed: readonly string[], signal: AbortSignal): Promise<{ open: OpenHostPorts } | { repair: string }>;
}

export interface HostPortFilterParts {
  guest: Pick<Connection, 'run'>;
  hostSockets(): Promise<HostSockets | undefined>;
  /** Returns the ports that lead back to the guest. */
  published(): readonly PublishedPort[];
  log: DriverContext['log'];
}

export function hostPortFilter({ guest, hostSockets, published, log }: HostPortFilterParts): HostPortFilter {
  /** The rules that this service has set. */
  let inForce: string | undefined;

  async function setRules(rules: string, signal: AbortSignal): Promise<void> {
    inForce = undefined;
    try {
      await guest.run(['sh', '-c', FILTER_SCRIPT], { input: rules, signal });
    } catch (error) {
      if (signal.aborted) throw error;
      throw new RdError(
        'ERR_DRIVER_FAILED',
        `the guest does not filter its connections to this host: ${messageOf(error)}`,
        {
          cause: error,
          ...(error instanceof RdError ? { details: error.details } : {}),
          advice: 'Restart the machine. If that does not help, build another image with `rdctl image build`.',
        },
      );
    }
    inForce = rules;
  }

  const open = async (allowed: readonly string[]) => openPorts(allowed, published(), await hostSockets());

  return {
    async set(allowed, signal) {
      await setRules(filterRules(await open(allowed)), signal);
    },
    async follow(allowed, signal) {
      const ports = await open(allowed);
      const rules = filterRules(ports);
      if (rules === inForce) return { open: ports };
      try {
        await setRules(rules, signal);
        log('debug', 'the ports of this host that the machine can use have changed', { ...ports });
        return { open: ports };
      } catch (error) {
        if (signal.aborted) throw error;
        return { repair: messageOf(error) };
      }
    },
  };
}
