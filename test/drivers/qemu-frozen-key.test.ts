import { expect, test } from 'vitest';
import { type FrozenFacts, frozenKey, GUEST_SCRIPTS } from '../../src/drivers/machines/qemu/frozen/state.ts';
import * as mounts from '../../src/drivers/machines/qemu/mounts/guest-scripts.ts';
import * as shell from '../../src/drivers/machines/qemu/scripts.ts';
import * as frozen from '../../src/drivers/machines/qemu/setup-scripts.ts';
import { SETTLE_SCRIPT } from '../../src/drivers/machines/qemu/setup-scripts.ts';

const FACTS: FrozenFacts = {
  image: 'sha256:0',
  qemu: 'QEMU emulator version 7.2.0',
  processor: '',
  shape: ['qemu-system-x86_64'],
  dataBytes: 1,
  keys: ['a', 'b'],
};
const NAMED = [
  ['give back', frozen.GIVE_BACK_SCRIPT],
  ['end sessions', frozen.END_SESSIONS_SCRIPT],
  ['wake', frozen.WAKE_SCRIPT],
  ['place of a program', shell.PLACE_SCRIPT],
  ['stop of a program', shell.STOP_SCRIPT],
  ['usual socket', shell.LINK_SCRIPT],
  ['place of a directory', mounts.PLACE_SCRIPT],
  ['hidden directories', mounts.HIDE_SCRIPT],
] as const;

test.each(NAMED)('a frozen state does not belong to a program with another script: %s', (_name, script) => {
  expect(GUEST_SCRIPTS).toContain(script);
  const other = GUEST_SCRIPTS.map((text) => (text === script ? `${text}# another` : text));
  expect(frozenKey(FACTS, other)).not.toBe(frozenKey(FACTS));
});

test('the script that repairs a guest after a resume is part of the script that wakes it', () => {
  expect(frozen.WAKE_SCRIPT.endsWith(SETTLE_SCRIPT)).toBe(true);
});
