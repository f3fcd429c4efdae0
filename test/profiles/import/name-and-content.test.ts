import { expect, test } from 'vitest';
import { type Content, nameMismatch } from '../../../profiles/formats/index.ts';

test.each<[string, Content, string | undefined]>([
  ['io.rancherdesktop.profile.locked.plist', 'json', 'darwin: its name says a property list, and it is JSON'],
  ['a.plist', 'mobileconfig', 'darwin: its name says a property list, and it is a configuration profile'],
  ['C:\\x\\LOCKED.JSON', 'reg', 'linux: its name says JSON, and it is a registry file'],
  ['team.json', 'reg', 'linux: its name says JSON, and it is a registry file'],
  ['locked.reg', 'plist', 'win32: its name says a registry file, and it is a property list'],
  ['Registry.pol', 'reg', 'win32: its name says a policy file of Windows, and it is a registry file'],
  ['locked.json', 'yaml', 'linux: its name says JSON, and it is YAML'],
  ['defaults.json', 'profile', 'linux: its name says JSON, and it is a profile document'],
  ['team.json', 'profile', undefined],
  ['team.json', 'yaml', undefined],
  ['locked.json', 'json', undefined],
  ['x.plist', 'plist', undefined],
  ['team.yaml', 'plist', undefined],
  ['<stdin>', 'plist', undefined],
  ['plist', 'json', undefined],
  ['a.constructor', 'json', undefined],
])('%s with %s', (label, content, expected) => {
  const found = nameMismatch(label, content);
  expect(found && `${found.platform}: ${found.reason}`).toBe(expected);
});
