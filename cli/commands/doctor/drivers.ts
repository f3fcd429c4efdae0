import { DRIVERS } from '../../../src/drivers/index.ts';
import type { Io } from '../../command.ts';
import { plainText } from '../../views/text.ts';

/** Whether a driver can run on this computer. */
export interface DriverReport {
  name: string;
  usable: boolean;
  /** What it found; absent where it cannot run. */
  detail?: string;
  /** Why it cannot run, and what to do. */
  reason?: string;
  fix?: string;
  /** The fix is a command line. */
  copyable?: true;
}

/** Probes every driver that runs something, in order of preference. */
export async function driverReports({ env }: Pick<Io, 'env'>): Promise<DriverReport[]> {
  const real = DRIVERS.filter(({ simulated }) => !simulated);
  return Promise.all(real.map(async ({ name, probe }) => ({ name, ...(await probe(env)) })));
}

/** What a driver found or misses, and below it what to do, whole: it is there to be copied. */
export function driverLines(reports: readonly DriverReport[]): string[] {
  const indent = 4 + Math.max(...reports.map(({ name }) => name.length));
  return reports.flatMap(({ name, usable, detail = '', reason = '', fix = '' }) => {
    const lines = usable ? [`can run: ${detail}`] : [reason, `fix: ${fix}`];
    return lines.map((line, at) => `${(at === 0 ? `  ${name}` : '').padEnd(indent)}${plainText(line)}`);
  });
}
