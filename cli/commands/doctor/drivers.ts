import { DRIVERS } from '../../../src/drivers/index.ts';
import type { Io } from '../../command.ts';
import { wrap } from '../../views/fold.ts';
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
}

/** Probes every driver that runs something, in order of preference. */
export async function driverReports({ env }: Pick<Io, 'env'>): Promise<DriverReport[]> {
  const real = DRIVERS.filter(({ simulated }) => !simulated);
  return Promise.all(real.map(async ({ name, probe }) => ({ name, ...(await probe(env)) })));
}

/** Columns that the lines fit into. */
const WIDTH = 60;

/** What a driver found or misses, and below it what to do, in lines of at most 60 columns. */
export function driverLines(reports: readonly DriverReport[]): string[] {
  const indent = 4 + Math.max(...reports.map(({ name }) => name.length));
  return reports.flatMap(({ name, usable, detail = '', reason = '', fix = '' }) => {
    const texts = usable ? [`can run: ${detail}`] : [reason, `fix: ${fix}`];
    const lines = texts.flatMap((text) => wrap(plainText(text).split(' '), WIDTH - indent));
    return lines.map((line, at) => `${(at === 0 ? `  ${name}` : '').padEnd(indent)}${line}`);
  });
}
