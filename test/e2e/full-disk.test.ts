import { readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { cannotMount, fillDisk, mountSmallDisk } from '../helpers/full-disk.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Settings that need more than the page that `leave` may leave. */
const LARGE = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`CHECK_WITH_A_LONG_NAME_${index}`, true]));

test.skipIf(cannotMount()).each([
  ['not a byte', 0],
  ['too little', 1],
])(
  'a disk with %s left: the change is refused, nothing has changed, and it works once there is space',
  async (_name, leave) => {
    const home = temporaryDirectory();
    onTestFinished(mountSmallDisk(home, '256k'));
    const { client, here, service } = await startService({ home, power: 'stopped' });
    await client.putSettings({ version: 19, images: { namespace: 'one' } });
    await client.putSettings({ version: 19, images: { namespace: 'two' } });
    const files = () => [here.settingsFile, here.previousSettingsFile].map((path) => readFileSync(path, 'utf8'));
    const before = { files: files(), settings: await client.settings(), status: await client.status() };

    const roomAgain = await fillDisk(home, leave);
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

    roomAgain();
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
