import { join } from 'node:path';
import type { RestingDriver } from '../../../src/client/offline.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import type { DriverFactory } from '../../../src/drivers/driver.ts';
import { RdError } from '../../../src/errors.ts';
import { defined } from '../../../src/json.ts';
import type { Io } from '../../command.ts';

/**
 * Returns the driver of this home's next service, and the reasons why it cannot run yet. They are warnings: a plan may be made on a computer where it
 * is never applied, or before a dependency is installed. `driver` is absent if none can run. `atRest`: its support and resources here, found by
 * running a program; absent if it cannot run yet.
 */
export async function nextDriver(
  io: Io,
  recorded: string | undefined,
  flag: string | undefined,
): Promise<{ driver?: string; atRest?(): Promise<RestingDriver>; warnings: string[] }> {
  const requested = flag || io.env.RDCTL_DRIVER;
  const choose = io.chooseDriver ?? (await import('../../../src/drivers/index.ts')).chooseDriver;
  const known = recorded ?? requested;
  try {
    const { factory } = await choose({
      env: io.env,
      ...defined({ recorded }),
      ...(requested ? { requested } : {}),
    });
    return {
      driver: factory.name,
      ...('support' in factory ? { atRest: () => restingDriver(factory, io) } : {}),
      warnings: [],
    };
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
    const { message, details, advice } = error;
    const warnings = [`Nothing can be applied yet: ${message}.`, ...details, ...(advice ? [advice] : [])];
    return { ...(known ? { driver: known } : {}), warnings };
  }
}

/** Returns a driver's support and resources on this computer; if they cannot be read, its support with every dependency. */
async function restingDriver(factory: DriverFactory, io: Io): Promise<RestingDriver> {
  const directory = join(homeOf(io).state, 'drivers', factory.name);
  const { name, simulated, summary, liveFields, hasCluster } = factory;
  const found = await factory.atRest({ env: io.env, directory }).catch(() => ({ support: factory.support }));
  return { name, simulated, summary, liveFields, hasCluster, ...found };
}
