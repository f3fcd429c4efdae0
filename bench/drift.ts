import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../src/client/client.ts';
import { discover } from '../src/client/discovery.ts';
import { compare, type Result, result } from './measure.ts';
import { startService, TOOL } from './service.ts';

const KEPT = `apiVersion: rdctl/v1
kind: Profile
metadata: { name: bench }
settings: { version: 19, images: { namespace: kept } }
watch: { heal: report }
`;

/** From a write by another manager until a reader of the status sees the drift from a kept profile, against the time until its answer. */
export async function drift(profile: string, rounds: number): Promise<Result[]> {
  await using service = await startService(profile);
  const directory = mkdtempSync(join(tmpdir(), 'rdctl-bench-kept-'));
  const file = join(directory, 'kept.yaml');
  writeFileSync(file, KEPT);
  execFileSync(process.execPath, [TOOL, 'apply', '-f', file, '--keep'], { env: service.env, stdio: 'ignore' });
  const client = createClient(await discover({}, service.env, 'linux'));
  if (!client.watch) throw new Error('the service to measure has no events');
  const leaving = new AbortController();
  let drifted = false;
  let changed = () => {};
  const over = client
    .watch(({ kept = [] }) => {
      drifted = kept.some(({ drift: fields }) => fields.length > 0);
      changed();
    }, leaving.signal)
    .catch(() => undefined);
  const until = async (wanted: boolean) => {
    while (drifted !== wanted) {
      await new Promise<void>((done) => {
        changed = done;
      });
    }
    return performance.now();
  };
  const write = (namespace: string) => client.putSettings({ version: 19, images: { namespace } });
  const subjects: number[] = [];
  const references: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const begun = performance.now();
    const seen = until(true);
    await write('drifted');
    references.push(performance.now() - begun);
    subjects.push((await seen) - begun);
    await write('kept');
    await until(false);
  }
  leaving.abort();
  await over;
  rmSync(directory, { recursive: true });
  return [
    result({
      name: 'watch: drift at a reader',
      compared: 'time from a write by another manager to its drift in a status / to its answer',
      ...compare(subjects, references),
      aim: { sign: '<=', value: 2 },
      unit: 'ms',
      rounds,
    }),
  ];
}
