import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type KeptRecord, loadKept, saveKept } from '../../src/state/kept-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { requestFor } from '../plan/planning.ts';

function recordAt(generation: number): KeptRecord {
  return {
    profile: {
      ...{ name: 'team', request: requestFor({}), watch: { heal: 'report', fields: {} }, files: [], places: {} },
      ...{ appliedAt: '2026-11-24T15:00:00.000Z', generation, pending: [] },
    },
    fields: {},
  };
}

test('what an apply replaced is stored with the profile; a mistake in it is one of the file', async () => {
  const path = join(temporaryDirectory(), 'kept.json');
  const records: KeptRecord[] = [{ ...recordAt(3), replaced: recordAt(2), applying: true }];
  await saveKept(path, records);
  expect(await loadKept(path, Date.now)).toEqual({ records });
  const stored = JSON.parse(readFileSync(path, 'utf8'));
  delete stored.kept[0].replaced.profile.generation;
  writeFileSync(path, JSON.stringify(stored));
  expect(await loadKept(path, Date.now)).toEqual({ records: [], notice: expect.stringContaining('was set aside') });
});
