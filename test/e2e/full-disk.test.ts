import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PAGE = 4096;

/** Only root may mount; `.ci/run` is. With `RDCTL_REQUIRE_REAL=1` it must work. */
function cannotMount(): boolean {
  const cannot = process.platform !== 'linux' || process.getuid?.() !== 0;
  if (cannot && process.env.RDCTL_REQUIRE_REAL === '1')
    throw new Error('a full disk can be made by root on Linux only');
  if (cannot) process.stderr.write('\nSKIPPED: a full disk can be made by root on Linux only\n');
  return cannot;
}

/** An empty file system of 256 KiB that is removed after the test. */
function smallDisk(): string {
  const directory = temporaryDirectory();
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=0700', 'rdctl-test', directory]);
  onTestFinished(() => void execFileSync('umount', ['--lazy', directory]));
  execFileSync('mount', ['--make-private', directory]);
  return directory;
}

/** Takes all space except this many pages. */
async function fill(directory: string, leave = 0): Promise<void> {
  const file = await open(join(directory, 'ballast'), 'w');
  try {
    for (;;) await file.write(Buffer.alloc(PAGE, 1));
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' });
    const { size } = await file.stat();
    await file.truncate(Math.ceil(size / PAGE) * PAGE - leave * PAGE);
  } finally {
    await file.close();
  }
}

/** Settings that need more than the page that `leave` may leave. */
const LARGE = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`CHECK_WITH_A_LONG_NAME_${index}`, true]));

test.skipIf(cannotMount()).each([
  ['not a byte', 0],
  ['too little', 1],
])(
  'a disk with %s left: the change is refused, nothing has changed, and it works once there is space',
  async (_name, leave) => {
    const home = smallDisk();
    const { client, here, service } = await startService({ home, power: 'stopped' });
    await client.putSettings({ version: 19, images: { namespace: 'one' } });
    await client.putSettings({ version: 19, images: { namespace: 'two' } });
    const files = () => [here.settingsFile, here.previousSettingsFile].map((path) => readFileSync(path, 'utf8'));
    const before = { files: files(), settings: await client.settings(), status: await client.status() };

    await fill(home, leave);
    const change = { version: 19, images: { namespace: 'three' }, diagnostics: { mutedChecks: LARGE } };
    await expect(client.putSettings(change)).rejects.toMatchObject({
      details: [expect.stringMatching(/could not write .*: no space left on the device/), expect.any(String)],
    });
    const raw = await client.request({ method: 'PUT', path: '/v1/settings', body: JSON.stringify(change) });
    expect(raw.status).toBe(500);
    expect(raw.body.toString()).toMatch(/^could not write .*: no space left on the device\nFree some space there/);
    expect(files()).toEqual(before.files);
    expect(await client.settings()).toEqual(before.settings);
    expect((await client.status()).generation).toBe(before.status.generation);
    expect(readdirSync(dirname(here.settingsFile)).toSorted()).toEqual(['settings.json', 'settings.previous.json']);

    rmSync(join(home, 'ballast'));
    const { text, generation } = await client.putSettings(change);
    expect(text).toBe('settings updated; no restart required');
    expect(generation).toBeGreaterThan(before.status.generation);
    await service.stop('enough');
    const second = await startService({ home });
    expect((await second.client.settings()).settings).toMatchObject({
      images: { namespace: 'three' },
      diagnostics: { mutedChecks: LARGE },
    });
  },
);
