import { DRIVERS } from '../../../src/drivers/index.ts';
import type { Io } from '../../command.ts';
import { plainText } from '../../views/text.ts';

/** The result of probing a driver. */
export interface DriverReport {
  name: string;
  usable: boolean;
  /** Findings of the probe; absent if the driver cannot run. */
  detail?: string;
  /** Reason why the driver cannot run; absent if it can. */
  reason?: string;
  fix?: string;
  /** Set if the fix is a command line. */
  copyable?: true;
}

/** Probes every driver that runs something, in order of preference. */
export async function driverReports({ env }: Pick<Io, 'env'>): Promise<DriverReport[]> {
  const real = DRIVERS.filter(({ simulated }) => !simulated);
  return Promise.all(real.map(async ({ name, probe }) => ({ name, ...(await probe(env)) })));
}

/** Formats the drivers: the findings or the reason of each, and the whole fix below, for copying. */
export function driverLines(reports: readonly DriverReport[]): string[] {
  const indent = 4 + Math.max(...reports.map(({ name }) => name.length));
  return reports.flatMap(({ name, usable, detail = '', reason = '', fix = '' }) => {
    const lines = usable ? [`can run: ${detail}`] : [reason, `fix: ${fix}`];
    return lines.map((line, at) => `${(at === 0 ? `  ${name}` : '').padEnd(indent)}${plainText(line)}`);
  });
}
