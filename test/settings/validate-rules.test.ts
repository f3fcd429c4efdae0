import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/json.ts';
import { type Circumstances, lines } from '../helpers/settings-circumstances.ts';

const VM = 'experimental.virtualMachine';
const WEB = 'experimental.containerEngine.webAssembly.enabled';
const MAC = { platform: 'darwin', arch: 'arm64', osVersion: '14.5' } as const;

describe('cluster versions', () => {
  test('must be offered', () => {
    expect(lines({ 'kubernetes.version': '1.30.2' }, { versions: ['1.31.0'] })).toEqual([
      'Kubernetes version "1.30.2" not found.',
    ]);
  });
  test('a stored version that is no longer offered may be repeated', () => {
    expect(
      lines({ 'kubernetes.version': '1.30.2' }, { versions: ['1.31.0'], current: { 'kubernetes.version': '1.30.2' } }),
    ).toEqual([]);
  });
  test.each([true, false])(
    'an empty version leaves the choice to the service, with the cluster on (%s) or off',
    (enabled) => {
      const current = { 'kubernetes.version': '1.30.2', 'kubernetes.enabled': enabled };
      const payload = { 'kubernetes.version': '', 'kubernetes.enabled': true };
      expect(lines(payload, { current, versions: ['1.30.2', '1.31.0'] })).toEqual([]);
      expect(lines(payload, { current })).toEqual([]);
    },
  );
});

describe('the virtual machine', () => {
  test.each<[string, JsonObject, Circumstances, string[]]>([
    [
      'an old macOS on ARM',
      { 'virtualMachine.type': 'vz' },
      { ...MAC, osVersion: '13.2.1' },
      ['Setting virtualMachine.type to "vz" on ARM requires macOS 13.3 (Ventura) or later.'],
    ],
    [
      'an old macOS on Intel',
      { 'virtualMachine.type': 'vz' },
      { ...MAC, arch: 'x64', osVersion: '12.7' },
      ['Setting virtualMachine.type to "vz" on Intel requires macOS 13.0 (Ventura) or later.'],
    ],
    ['13.2 on Intel will do', { 'virtualMachine.type': 'vz' }, { ...MAC, arch: 'x64', osVersion: '13.2' }, []],
    [
      'an unknown macOS is not held against anyone',
      { 'virtualMachine.type': 'vz' },
      { platform: 'darwin', arch: 'arm64' },
      [],
    ],
    [
      'vz with 9p',
      { 'virtualMachine.type': 'vz' },
      { ...MAC, current: { 'virtualMachine.mount.type': '9p' } },
      [
        'Setting virtualMachine.type to "vz" requires that virtual-machine.mount.type is "reverse-sshfs" or "virtiofs".',
      ],
    ],
    [
      'qemu with virtiofs',
      { 'virtualMachine.type': 'qemu' },
      { ...MAC, current: { 'virtualMachine.type': 'vz', 'virtualMachine.mount.type': 'virtiofs' } },
      ['Setting virtualMachine.type to "qemu" requires that virtual-machine.mount.type is "reverse-sshfs" or "9p".'],
    ],
    [
      'virtiofs with qemu on macOS',
      { 'virtualMachine.mount.type': 'virtiofs' },
      MAC,
      ['Setting virtualMachine.mount.type to "virtiofs" requires that virtual-machine.type is "vz".'],
    ],
    ['virtiofs with qemu on Linux', { 'virtualMachine.mount.type': 'virtiofs' }, {}, []],
    [
      '9p with vz',
      { 'virtualMachine.mount.type': '9p' },
      { ...MAC, current: { 'virtualMachine.type': 'vz' } },
      ['Setting virtualMachine.mount.type to "9p" requires that virtual-machine.type is "qemu".'],
    ],
    ['both at once', { 'virtualMachine.type': 'vz', 'virtualMachine.mount.type': 'virtiofs' }, MAC, []],
    [
      'Rosetta without vz',
      { 'virtualMachine.useRosetta': true },
      MAC,
      ['Setting virtualMachine.useRosetta can only be enabled when virtual-machine.type is "vz".'],
    ],
    [
      'Rosetta on Intel',
      { 'virtualMachine.useRosetta': true },
      { ...MAC, arch: 'x64', current: { 'virtualMachine.type': 'vz' } },
      ['Setting virtualMachine.useRosetta can only be enabled on aarch64 systems.'],
    ],
    [
      'Rosetta takes no text',
      { 'virtualMachine.useRosetta': 'yes' },
      { ...MAC, current: { 'virtualMachine.type': 'vz' } },
      ['Invalid value for "virtualMachine.useRosetta": <"yes">'],
    ],
    ['Rosetta with vz at once', { 'virtualMachine.type': 'vz', 'virtualMachine.useRosetta': true }, MAC, []],
    [
      'a 9p option without 9p',
      { [`${VM}.mount.9p.msizeInKib`]: 64 },
      {},
      [`Setting ${VM}.mount.9p.msizeInKib can only be changed when virtualMachine.mount.type is "9p".`],
    ],
    ['a 9p option with 9p at once', { 'virtualMachine.mount.type': '9p', [`${VM}.mount.9p.msizeInKib`]: 64 }, {}, []],
    [
      'a wrong 9p option',
      { 'virtualMachine.mount.type': '9p', [`${VM}.mount.9p.msizeInKib`]: 3 },
      {},
      [`Invalid value for "${VM}.mount.9p.msizeInKib": <3>`],
    ],
    [
      'the machine on Windows',
      { 'virtualMachine.memoryInGB': 4 },
      { platform: 'win32' },
      ['Changing field "virtualMachine.memoryInGB" via the API isn\'t supported.'],
    ],
  ])('%s', (_, payload, circumstances, expected) => {
    expect(lines(payload, circumstances)).toEqual(expected);
  });
});

describe('the classic store and WebAssembly', () => {
  const enable = 'Cannot enable WebAssembly with classic storage for moby.';
  const classic = 'Cannot switch to classic storage for moby when WebAssembly is enabled.';
  const moby = 'Cannot switch to moby container engine with classic storage when WebAssembly is enabled.';
  test.each<[string, JsonObject, JsonObject, string[]]>([
    ['WebAssembly last', { [WEB]: true }, { 'containerEngine.mobyStorageDriver': 'classic' }, [enable]],
    ['the store last', { 'containerEngine.mobyStorageDriver': 'classic' }, { [WEB]: true }, [classic]],
    [
      'moby last',
      { 'containerEngine.name': 'moby' },
      { 'containerEngine.name': 'containerd', [WEB]: true, 'containerEngine.mobyStorageDriver': 'classic' },
      [moby],
    ],
    [
      'two at once, one line each',
      { [WEB]: true, 'containerEngine.mobyStorageDriver': 'classic' },
      {},
      [enable, classic],
    ],
    [
      'with containerd',
      { [WEB]: true, 'containerEngine.mobyStorageDriver': 'classic', 'containerEngine.name': 'containerd' },
      {},
      [],
    ],
  ])('%s', (_, payload, current, expected) => {
    expect(lines(payload, { current })).toEqual(expected);
  });
});
