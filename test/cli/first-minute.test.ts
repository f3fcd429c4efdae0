import { expect, test } from 'vitest';
import { type DriverReport, driverLines } from '../../cli/commands/doctor/drivers.ts';
import { firstMinuteText } from '../../cli/first-minute.ts';

const QEMU: DriverReport = {
  name: 'qemu',
  usable: false,
  reason: 'not installed: qemu-system-x86_64, qemu-img, ssh',
  fix: 'apt-get install --no-install-recommends qemu-system-x86 qemu-utils openssh-client',
};
const HOST: DriverReport = { name: 'host', usable: true, detail: 'root on Linux with dockerd and containerd' };

test('where a driver can run, the command to type starts it', () => {
  expect(firstMinuteText([QEMU, HOST])).toBe(`Nothing has run here yet. The first start uses host.
  qemu  not installed: qemu-system-x86_64, qemu-img, ssh
        fix: apt-get install --no-install-recommends
        qemu-system-x86 qemu-utils openssh-client
  host  can run: root on Linux with dockerd and containerd
Start an engine:       rdctl up
Write a profile:       rdctl init
All commands:          rdctl --help
`);
});

test('where none can, the simulation is offered', () => {
  const text = firstMinuteText([QEMU]);
  expect(text).toMatch(/^Nothing has run here yet\. No driver can run yet:\n/);
  expect(text).toMatch(/^Try it without engine: rdctl up --driver simulated$/m);
});

test('every line fits 60 columns, and no word is lost', () => {
  for (const report of [QEMU, HOST]) {
    const lines = driverLines([report]);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
    const words = lines.join(' ').split(/\s+/);
    for (const word of `${report.reason ?? ''} ${report.fix ?? ''} ${report.detail ?? ''}`.trim().split(/\s+/))
      expect(words).toContain(word);
  }
});
