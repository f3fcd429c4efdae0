import { expect, test, vi } from 'vitest';
import { ioError } from '../../src/os/io-error.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { serviceHistory } from '../../src/service/history.ts';
import { DEFAULT_MACHINE_OPTIONS } from '../../src/settings/machine-options.gen.ts';
import { settingsWith } from '../reconcile/worlds.ts';

const LIVE = { settings: settingsWith(), machine: DEFAULT_MACHINE_OPTIONS, power: 'started' as const, generation: 1 };
const NEXT = { ...LIVE, settings: settingsWith({ 'images.namespace': 'web' }), generation: 2 };
const STOPPED = { ...LIVE, power: 'stopped' as const, generation: 2 };

test('a change that cannot be recorded is refused; on a full disk a stop still works', async () => {
  let failure: string | undefined;
  const added: Omit<HistoryEntry, 'outcome'>[] = [];
  const write = vi.fn();
  const history = serviceHistory(
    {
      last: 0,
      onOldest: () => undefined,
      async add(entry) {
        if (failure) throw ioError('write', '/history.jsonl', Object.assign(new Error(failure), { code: failure }));
        added.push(entry);
      },
      close: async () => undefined,
    },
    { write },
  );
  failure = 'ENOSPC';
  await expect(history.writing(LIVE, NEXT, { how: 'set' })).rejects.toMatchObject({ code: 'ERR_IO' });
  await history.writing(LIVE, STOPPED, { how: 'power' });
  expect(write).toHaveBeenCalledWith('warn', expect.stringContaining('the disk is full'), { generation: 2 });
  failure = 'EACCES';
  await expect(history.writing(LIVE, STOPPED, { how: 'power' })).rejects.toMatchObject({ code: 'ERR_IO' });
  failure = undefined;
  await history.writing(LIVE, NEXT, { how: 'set' });
  expect(added).toMatchObject([{ generation: 2, by: { how: 'set' } }]);
});
