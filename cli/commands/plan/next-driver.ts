import type { DriverInfo } from '../../../src/drivers/driver.ts';
import { RdError } from '../../../src/errors.ts';
import type { Io } from '../../command.ts';

/**
 * The driver of this home's next service, and why it cannot run yet. Those reasons are warnings: a plan may be made on
 * a computer where it is never applied, or before a dependency is installed. `driver` is absent where none can run. `info`: what it supports;
 * absent where it cannot run yet.
 */
export async function nextDriver(
  io: Io,
  recorded: string | undefined,
  flag: string | undefined,
): Promise<{ driver?: string; info?: DriverInfo; warnings: string[] }> {
  const requested = flag || io.env.RDCTL_DRIVER;
  const choose = io.chooseDriver ?? (await import('../../../src/drivers/index.ts')).chooseDriver;
  const known = recorded ?? requested;
  try {
    const { factory } = await choose({
      env: io.env,
      ...(recorded === undefined ? {} : { recorded }),
      ...(requested ? { requested } : {}),
    });
    return { driver: factory.name, ...('support' in factory ? { info: factory } : {}), warnings: [] };
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
    const { message, details, advice } = error;
    const warnings = [`Nothing can be applied yet: ${message}.`, ...details, ...(advice ? [advice] : [])];
    return { ...(known ? { driver: known } : {}), warnings };
  }
}
