import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { qemuFailed } from '../../src/drivers/machines/qemu/parts.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PANIC = [
  '[    1.004711] ..... failed :(.',
  "[    1.004802] Kernel panic - not syncing: IO-APIC + timer doesn't work!  Boot with apic=debug and send a report.  ",
  ...Array.from({ length: 30 }, (_, at) => `[    1.0049${at}] ? panic+0x106/0x2dc`),
];

test.each([
  ['nothing', '', [], 'QEMU ended', 'qemu.log'],
  ['what QEMU printed', 'qemu: no memory\n', ['[ 1.0] booting'], 'QEMU ended: qemu: no memory', 'qemu.log'],
  [
    'that its kernel gave up',
    'a warning\n',
    PANIC,
    "QEMU ended: the kernel of the guest gave up: IO-APIC + timer doesn't work!  Boot with apic=debug and send a report.",
    'serial.log',
  ],
])('the error about a QEMU that ended says %s', async (_, log, serial, message, named) => {
  const folder = temporaryDirectory();
  const [logFile, serialLog] = [join(folder, 'qemu.log'), join(folder, 'serial.log')];
  writeFileSync(logFile, log);
  writeFileSync(serialLog, serial.map((line) => `${line}\r\n`).join(''));
  const cause = new Error('no connection');
  expect(await qemuFailed(logFile, serialLog, cause)).toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message,
    advice: `See ${join(folder, named)}.`,
    cause,
  });
});
