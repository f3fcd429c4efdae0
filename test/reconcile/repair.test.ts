import { expect, test } from 'vitest';
import { host } from '../../src/drivers/index.ts';
import { goalOf } from '../../src/plan/backend.ts';
import { consequencesOf } from '../../src/plan/consequences.ts';
import { nextMachineStep } from '../../src/reconcile/step.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';

const settings = defaultSettings({ platform: 'linux', arch: 'x64' });

test.each([
  ['started', 'adjust'],
  ['stopped', 'stop'],
] as const)('a machine that lacks something, to be %s: %s', (power, step) => {
  const goal = goalOf({ settings, ...DEFAULT_BLOCKS, power }, host);
  const seen = {
    machine: { state: 'on', spec: goal.machine, repair: 'a rule is missing' },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster: { state: 'unsupported' },
  } as const;
  expect(nextMachineStep(consequencesOf(goal, seen, host))?.do).toBe(step);
  const whole = { ...seen, machine: { state: 'on', spec: goal.machine } } as const;
  if (power === 'started') expect(nextMachineStep(consequencesOf(goal, whole, host))).toBeUndefined();
});
