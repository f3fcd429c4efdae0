import { execFileSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readProcesses } from '../../src/os/process-table.ts';
import { hostTraces } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { toolHome } from '../helpers/tool-home.ts';

const reason = await whyNoRealEngine();
const POLL = { timeout: 60_000, interval: 200 };
const PROFILE = ['-f', 'examples/moby.yaml'];

/** A real dockerd in a home that can be renamed. */
async function scene() {
  const tool = toolHome({ RDCTL_DRIVER: 'host' });
  const { home, rdctl, rdctlWith } = tool;
  const elsewhere = `${home}-elsewhere`;
  const there = (...argv: string[]) => rdctlWith({ env: { RDCTL_HOME: elsewhere } }, ...argv);
  onTestFinished(async () => {
    await there('shutdown');
    rmSync(elsewhere, { recursive: true, force: true });
  });
  /** Every dockerd with files in one of these homes; both names start the same. */
  const dockerds = async () =>
    (await readProcesses())
      .filter(({ argv }) => argv[0]?.endsWith('dockerd') && argv.some((arg) => arg.includes(home)))
      .map(({ pid }) => pid);
  expect(await rdctl('apply', ...PROFILE)).toMatchObject({ exit: 0 });
  const [engine = 0, ...others] = await dockerds();
  expect(others).toEqual([]);
  return { ...tool, elsewhere, there, dockerds, engine };
}

describe.skipIf(reason !== undefined)('a home that is moved or copied while its engine runs', () => {
  test('moved: no second engine starts under either name, and everything continues when it is back', async () => {
    const { home, elsewhere, rdctl, there, status, servicePid, dockerds, engine } = await scene();
    const moved = { exit: 1, err: expect.stringContaining(`${elsewhere} was moved from ${home}`) };
    const commands = [['plan', ...PROFILE], ['apply', ...PROFILE], ['start'], ['shutdown']];

    renameSync(home, elsewhere);
    for (const argv of commands) expect(await there(...argv)).toMatchObject(moved);
    expect(await dockerds()).toEqual([engine]);
    // The old name is free: a start there finds the engine that uses its files, and starts no other.
    const second = await rdctl('apply', ...PROFILE);
    expect(second.exit).not.toBe(0);
    expect(second.err).toContain('is already using the same files');
    expect(await dockerds()).toEqual([engine]);
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(await dockerds()).toEqual([engine]);
    rmSync(home, { recursive: true });

    renameSync(elsewhere, home);
    await expect.poll(async () => (await status()).converged, POLL).toBe(true);
    expect(await dockerds()).toEqual([engine]);

    // The same with a killed service.
    process.kill(servicePid(), 'SIGKILL');
    renameSync(home, elsewhere);
    for (const argv of commands) expect(await there(...argv)).toMatchObject(moved);
    expect(await dockerds()).toEqual([engine]);
    expect(existsSync(home)).toBe(false);
    renameSync(elsewhere, home);
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(await dockerds()).toEqual([]);
    expect(await hostTraces(join(home, 'state', 'drivers', 'host'))).toEqual([]);

    // Nothing runs: it can be renamed freely.
    renameSync(home, elsewhere);
    expect(await there('apply', ...PROFILE)).toMatchObject({ exit: 0 });
    expect(await there('shutdown')).toMatchObject({ exit: 0 });
    expect(await hostTraces(join(elsewhere, 'state', 'drivers', 'host'))).toEqual([]);
  }, 300_000);

  test('copied: the copy leaves the original alone, and gets its own engine when the original has stopped', async () => {
    const { home, elsewhere, rdctl, there, status, dockerds, engine } = await scene();
    execFileSync('cp', ['-a', '--one-file-system', home, elsewhere]);
    expect(await there('shutdown')).toMatchObject({ exit: 0, out: '' });
    const refused = await there('apply', ...PROFILE);
    expect(refused.exit).not.toBe(0);
    expect(refused.err).toContain('these directories are a copy');
    expect(await there('shutdown')).toMatchObject({ exit: 0 });
    expect(await dockerds()).toEqual([engine]);
    expect(await status()).toMatchObject({ converged: true });

    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(await there('apply', ...PROFILE)).toMatchObject({ exit: 0 });
    const [own, ...others] = await dockerds();
    expect(others).toEqual([]);
    expect(own).not.toBe(engine);
    expect(await there('shutdown')).toMatchObject({ exit: 0 });
    for (const directory of [home, elsewhere]) {
      expect(await hostTraces(join(directory, 'state', 'drivers', 'host'))).toEqual([]);
    }
  }, 300_000);
});
