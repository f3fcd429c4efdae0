import { expect, test } from 'vitest';
import type { DriverReport } from '../../cli/commands/doctor/drivers.ts';
import { simulationLine } from '../../cli/commands/up/simulation.ts';
import { firstMinuteText } from '../../cli/first-minute.ts';
import { hostVerdict } from '../../src/drivers/machines/host/index.ts';
import { qemuVerdict } from '../../src/drivers/machines/qemu/support.ts';

const LINUX = {
  platform: 'linux',
  arch: 'x64',
  root: false,
  missingPrograms: [],
  missingBuilders: [],
  images: [],
} as const;
const MISSING = { missingPrograms: ['qemu-img'], missingBuilders: ['mmdebstrap'] };

const qemu = (facts: object = {}): DriverReport => ({ name: 'qemu', ...qemuVerdict({ ...LINUX, ...facts }) });
const host = (facts: object = {}): DriverReport => ({
  name: 'host',
  ...hostVerdict({ ...LINUX, capable: true, controlGroups: true, ...facts }),
});

test('where a driver can run, the command to type starts it; what another one misses is one line to copy', () => {
  expect(
    firstMinuteText([qemu(MISSING), host({ root: true })]),
  ).toBe(`Nothing has run here yet. The first start uses host.
  qemu  not installed: qemu-img
        fix: sudo apt-get update && sudo apt-get install --no-install-recommends qemu-system-x86 qemu-utils openssh-client openssh-sftp-server bubblewrap mmdebstrap uidmap e2fsprogs ca-certificates && rdctl image build
  host  can run: root on Linux with dockerd and containerd
Start an engine:       rdctl up
Write a profile:       rdctl init
All commands:          rdctl --help
`);
});

test('where none can, the simulation is offered', () => {
  const text = firstMinuteText([qemu()]);
  expect(text).toMatch(/^Nothing has run here yet\. No driver can run yet:\n/);
  expect(text).toMatch(/^Without an engine: {5}rdctl up --or-simulate$/m);
});

test.each<[string, DriverReport[], string]>([
  [
    'a user without an image',
    [qemu(), host()],
    'rdctl reset --factory && rdctl image build && rdctl up examples/moby.yaml',
  ],
  [
    'a user without QEMU, to whom the engines of root are second',
    [qemu(MISSING), host()],
    `rdctl reset --factory && ${qemu(MISSING).fix} && rdctl up examples/moby.yaml`,
  ],
  ['a user where QEMU cannot run', [qemu({ arch: 'riscv64' }), host()], 'sudo rdctl up examples/moby.yaml'],
  [
    'root without anything, for whom the host needs the least',
    [qemu({ ...MISSING, root: true }), host({ root: true, missingPrograms: ['dockerd'] })],
    `rdctl reset --factory && ${host({ root: true, missingPrograms: ['dockerd'] }).fix} && rdctl up examples/moby.yaml`,
  ],
  [
    'a computer where an engine can run by now',
    [host({ root: true })],
    'rdctl reset --factory && rdctl up examples/moby.yaml',
  ],
])('a simulation says that it is one, and the command that makes it real: %s', (_, reports, command) => {
  const line = simulationLine(reports, 'examples/moby.yaml');
  expect(line).toMatch(/^notice: SIMULATED, [^\n]*$/);
  expect(line.slice(line.indexOf(': ', 'notice: '.length) + 2)).toBe(command);
});

test('where no command makes it real, the one that says what is missing', () => {
  expect(simulationLine([qemu({ arch: 'riscv64' }), host({ platform: 'darwin' })], undefined)).toMatch(
    /: rdctl doctor$/,
  );
});

test('the profile in the command is one word for a shell', () => {
  expect(simulationLine([host({ root: true })], "my team's.yaml")).toMatch(/ && rdctl up 'my team'\\''s\.yaml'$/);
});
