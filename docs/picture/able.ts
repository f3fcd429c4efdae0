import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { host, qemu } from '../../src/drivers/index.ts';

/** Why this computer is not one that the picture of the first minute shows; undefined if it is. */
export async function whyNoFirstMinute(): Promise<string | undefined> {
  const engines = await host.probe(process.env);
  if (!engines.usable) return `${engines.reason}; fix: ${engines.fix}`;
  const home = mkdtempSync(join(tmpdir(), 'rdctl-picture-'));
  try {
    const machine = await qemu.probe({ PATH: process.env.PATH, HOME: home });
    if (machine.usable) return 'the qemu driver can run without a guest image';
    return machine.reason === 'there is no guest image' ? undefined : `${machine.reason}; fix: ${machine.fix}`;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
