import { expect, test } from 'vitest';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';
import { validate } from '../../src/settings/validate.ts';

// Compatible pairs: settings facts, 3.4.1.

const ARCH: Readonly<Record<Platform, string>> = { darwin: 'arm64', linux: 'x64', win32: 'x64' };

test.each<[Platform, string, string, boolean]>([
  ['linux', 'qemu', 'virtiofs', true],
  ['linux', 'qemu', '9p', true],
  ['linux', 'qemu', 'reverse-sshfs', true],
  ['darwin', 'qemu', '9p', true],
  ['darwin', 'qemu', 'reverse-sshfs', true],
  ['darwin', 'qemu', 'virtiofs', false],
  ['darwin', 'vz', 'virtiofs', true],
  ['darwin', 'vz', 'reverse-sshfs', true],
  ['darwin', 'vz', '9p', false],
])('on %s, %s with %s: %s', (platform, type, mount, valid) => {
  const host = { platform, arch: ARCH[platform], osRelease: '24.0.0', osVersion: '15.0' };
  const payload = { version: 19, virtualMachine: { type, mount: { type: mount } } };
  const issues = validate(payload, { ...host, current: defaultSettings(host) });
  expect(issues.length === 0, JSON.stringify(issues)).toBe(valid);
});
