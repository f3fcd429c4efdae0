import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeQemuRecord } from '../../src/drivers/machines/qemu/record.ts';
import { MACHINE } from '../contract/driver-suite.ts';

export function writeState(home: string, driver: string): void {
  mkdirSync(join(home, 'state'), { recursive: true, mode: 0o700 });
  writeFileSync(
    join(home, 'state', 'state.json'),
    JSON.stringify({ format: 1, driver, power: 'started', generation: 1 }),
  );
}

/**
 * What the qemu driver leaves on disk while its machine is on, and this Bash script as `ssh`.
 * @returns a PATH with it.
 */
export async function guestRecords(home: string, ssh: string): Promise<string> {
  const directory = join(home, 'state', 'drivers', 'qemu');
  mkdirSync(join(directory, 'run'), { recursive: true, mode: 0o700 });
  const started = { image: 'sha256:1', sshPort: 2222, accelerator: 'tcg', booted: true } as const;
  await writeQemuRecord(join(directory, 'machine.json'), { power: 'on', spec: MACHINE, ...started });
  writeState(home, 'qemu');
  const bin = join(home, 'programs');
  mkdirSync(bin);
  writeFileSync(join(bin, 'ssh'), `#!/bin/bash\n${ssh}\n`, { mode: 0o755 });
  return `${bin}:${process.env.PATH}`;
}
