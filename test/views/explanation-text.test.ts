import { expect, test } from 'vitest';
import { explanationText } from '../../cli/commands/explain.ts';
import { style } from '../../cli/views/text.ts';
import { explainSetting } from '../../src/client/explain.ts';
import { qemu } from '../../src/drivers/index.ts';
import type { SettingLayers } from '../../src/plan/layers.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';

const { name, simulated, support, liveFields } = qemu;
const LAYERS: SettingLayers = {
  kind: 'SettingLayers',
  formatVersion: 1,
  settingsFile: '/settings.json',
  looked: [],
  basis: 'service',
  platform: 'linux',
  builtIn: {},
  inForce: {},
  stored: {},
  driver: { name, simulated, support, liveFields },
};

test.each([
  [
    'virtualMachine.memoryInGB',
    'is applied live where supported, otherwise restarts the backend; `rdctl plan` shows which',
  ],
  ['virtualMachine.mount.type', 'restarts the backend'],
  ['experimental.virtualMachine.sshPortForwarder', 'is applied live'],
])('says what changing %s costs with the driver', (path, cost) => {
  const field = FIELDS.find((each) => each.path === path);
  if (!field) throw new Error(`no setting ${path}`);
  const text = explanationText(explainSetting(field, LAYERS), [], style(false));
  expect(/^A change +(.*)$/m.exec(text)?.[1]).toBe(cost);
});
