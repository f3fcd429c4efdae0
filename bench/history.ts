import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Desired } from '../src/reconcile/contract.ts';
import { serviceHistory } from '../src/service/history.ts';
import { DEFAULT_BLOCKS } from '../src/settings/blocks.gen.ts';
import { defaultSettings } from '../src/settings/defaults.ts';
import { saveDesired } from '../src/state/desired-write.ts';
import { openHistory } from '../src/state/history-file.ts';
import { places } from '../src/state/places.ts';
import { median, type Result, result } from './measure.ts';

const DRIVER = 'simulated';

/** What an entry of the history adds to a write of settings, on the disk of temporary files; also where old entries are dropped. */
export async function history(rounds: number): Promise<Result[]> {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-bench-history-'));
  try {
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    for (const directory of [here.state, here.config]) mkdirSync(directory, { recursive: true });
    const recorder = serviceHistory(await openHistory(here.historyFile, 0, Date.now), { write: () => undefined });
    let desired: Desired = {
      ...{ settings: defaultSettings({ platform: 'linux', arch: 'x64' }), ...DEFAULT_BLOCKS },
      ...{ power: 'started', generation: 1 },
    };
    const write = async (isRecorded: boolean): Promise<number> => {
      const settings = structuredClone(desired.settings);
      settings.virtualMachine.memoryInGB = 2 + (desired.generation % 2);
      const next: Desired = { ...desired, settings, generation: desired.generation + 1 };
      const start = process.hrtime.bigint();
      if (isRecorded) await recorder.writing(desired, next, { how: 'set', program: 'bench' });
      await saveDesired(here, DRIVER, { before: desired, next });
      const ms = Number(process.hrtime.bigint() - start) / 1e6;
      desired = next;
      return ms;
    };
    await write(true);
    const subjects: number[] = [];
    const references: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      if (round % 2 === 0) references.push(await write(false));
      subjects.push(await write(true));
      if (round % 2 === 1) references.push(await write(false));
    }
    await recorder.close();
    const more = subjects.map((ms, index) => ms - (references[index] ?? Number.NaN));
    return [
      result({
        name: 'history: an entry, ms more',
        compared: 'a write of settings with an entry / without one',
        ...{ ratio: median(more), subject: median(subjects), reference: median(references) },
        aim: { sign: '<=', value: 10 },
        ...{ unit: 'ms', rounds },
      }),
    ];
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
