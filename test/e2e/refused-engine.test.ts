import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { callEngine } from '../helpers/engine-client.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { refusingDockerd } from '../helpers/refusing-dockerd.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { toolHome } from '../helpers/tool-home.ts';

const reason = await whyNoRealEngine();

describe.skipIf(reason !== undefined)('a dockerd that refuses its configuration', () => {
  test('ends with the old one running, also after the service was killed', async () => {
    const PATH = `${refusingDockerd(temporaryDirectory())}:${process.env.PATH}`;
    const { rdctl, status, servicePid } = toolHome({ PATH });
    const classic = join(temporaryDirectory(), 'classic.json');
    writeFileSync(classic, JSON.stringify({ version: 19, containerEngine: { mobyStorageDriver: 'classic' } }));
    expect(await rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    const { exit, err } = await rdctl('apply', '-f', classic);
    expect([exit, err]).toEqual([1, expect.stringContaining('The change failed and was undone: engine start failed')]);
    const { engine, converged } = await status();
    expect({ converged, name: engine.name }).toEqual({ converged: true, name: 'moby' });
    expect((await callEngine(engine.endpoint ?? '', 'GET', '/_ping')).body.toString()).toBe('OK');

    await rdctl('apply', '--no-wait', '-f', classic);
    process.kill(servicePid(), 'SIGKILL');
    expect((await rdctl('start', '--wait')).exit).toBe(0);
    await expect.poll(async () => (await status()).converged, { timeout: 30_000 }).toBe(true);
    const last = async () => JSON.parse((await rdctl('history', '-o', 'json')).out).entries.slice(-2);
    await expect.poll(last).toMatchObject([
      { by: { how: 'apply' }, outcome: { result: 'returned' } },
      { by: { how: 'return' }, outcome: { result: 'converged' } },
    ]);
  });
});
