import { expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { unprotected } from '../../src/plan/blocks.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';

test('a requested protection that is missing is named', () => {
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  const path = 'containerEngine.allowedImages.enabled';
  const open = {
    ...SIMULATED_INFO,
    support: { ...SIMULATED_INFO.support, [path]: { level: 'unsupported', reason: 'no filter', accepts: [false] } },
  } as const;
  expect(unprotected(settings, open)).toEqual([]);
  settings.containerEngine.allowedImages.enabled = true;
  expect(unprotected(settings, open)).toEqual([{ path, reason: 'no filter' }]);
  expect(unprotected(settings, { ...open, support: { ...open.support, [path]: { level: 'enforced' } } })).toEqual([]);
});
