import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import {
  adoptPlaces,
  noteProgress,
  recordFailedStart,
  refuseRunning,
  requireAdopted,
} from '../../src/state/drop-in.ts';
import { type Places, places } from '../../src/state/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NOW = Date.UTC(2030, 0, 2, 3, 4, 5, 6);

let user: string;
let here: Places;
beforeEach(() => {
  user = temporaryDirectory();
  here = places({ RDCTL_COMPAT: 'rancher-desktop' }, 'linux', user);
});

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** A port on which something accepts connections until the test ends. */
async function listening(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

const adopt = (wanted: boolean) => adoptPlaces(here, { adopt: wanted, now: NOW });

test('without drop-in mode there is nothing to adopt', async () => {
  const own = places({}, 'linux', user);
  write(own.settingsFile, '{}');
  expect(await adoptPlaces(own, { adopt: false, now: NOW })).toEqual([]);
  await requireAdopted(own);
  await refuseRunning(own);
});

test('empty directories are marked, and are ours from then on', async () => {
  expect(await adopt(false)).toEqual([]);
  expect(JSON.parse(readFileSync(here.dropInMarker ?? '', 'utf8'))).toMatchObject({ product: 'rdctl' });
  write(here.settingsFile, '{}');
  expect(await adopt(false)).toEqual([]);
  await requireAdopted(here);
});

test('a mark being written, and what another start creates after its own, is not the other application', async () => {
  write(join(here.data, '.rdctl-drop-in.json.0123456789ab.tmp'), '{');
  expect(await adopt(false)).toEqual([]);
  const other = places({ RDCTL_COMPAT: 'rancher-desktop' }, 'linux', temporaryDirectory());
  const starts = Array.from({ length: 8 }, async () => {
    await adoptPlaces(other, { adopt: false, now: NOW });
    write(other.settingsFile, '{}');
  });
  await Promise.all(starts);
  expect(readdirSync(other.data)).toEqual(['rdctl-drop-in.json']);
});

describe('settings written by a script before the first start', () => {
  const SETTINGS = '{"version":10,"kubernetes":{"enabled":false}}';

  test.each(['linux', 'darwin', 'win32'] as const)('are adopted, with a copy of the original: %s', async (platform) => {
    // Windows directories are joined with its own separator.
    const at = places({ RDCTL_COMPAT: 'rancher-desktop', LOCALAPPDATA: 'C:\\x' }, platform, user);
    const real = platform === 'win32' ? posixPaths(at) : at;
    write(real.settingsFile, SETTINGS);
    mkdirSync(join(real.data, 'logs'), { recursive: true });
    await requireAdopted(real);
    const copy = join(real.config, 'settings.before-rdctl-20300102T030405006Z.json');
    expect(await adoptPlaces(real, { adopt: false, now: NOW })).toEqual([
      `${real.settingsFile} was there before the first start and is in force; as it was it is kept in ${copy}.`,
    ]);
    expect([real.settingsFile, copy].map((path) => readFileSync(path, 'utf8'))).toEqual([SETTINGS, SETTINGS]);
    expect(JSON.parse(readFileSync(real.dropInMarker ?? '', 'utf8'))).toMatchObject({ settingsBefore: copy });
    expect(await adoptPlaces(real, { adopt: false, now: NOW })).toEqual([]);
  });

  test('are refused beside the connection file of the other application', async () => {
    write(here.settingsFile, SETTINGS);
    write(here.connectionFile, JSON.stringify({ user: 'user', password: 'x', port: await listening(), pid: 1 }));
    await expect(adopt(false)).rejects.toMatchObject({ code: 'ERR_WRONG_TARGET' });
    await expect(adopt(true)).rejects.toMatchObject({ code: 'ERR_ALREADY_RUNNING' });
  });
});

/** The Windows locations below the directory of the test. */
function posixPaths(at: Places): Places {
  const below = (path: string) => join(user, path.replace('C:', '').replaceAll('\\', '/'));
  return {
    ...at,
    ...Object.fromEntries(
      Object.entries(at).map(([name, path]) => [name, name === 'dropIn' || path === undefined ? path : below(path)]),
    ),
  };
}

describe('files of the other application', () => {
  test.each(['data', 'logs', 'programs'])('are refused and not changed: %s', async (what) => {
    const path = {
      data: join(here.data, 'lima', 'x'),
      logs: join(here.data, 'logs', 'wsl.log'),
      programs: join(here.bin, 'docker'),
    }[what];
    write(path ?? '', 'theirs');
    write(here.settingsFile, 'theirs');
    const before = readdirSync(user, { recursive: true }).sort();
    for (const refused of [() => adopt(false), () => requireAdopted(here)]) {
      await expect(refused()).rejects.toMatchObject({
        code: 'ERR_WRONG_TARGET',
        message: expect.stringContaining('made by Rancher Desktop'),
        advice: expect.stringContaining('--adopt'),
      });
    }
    expect(readdirSync(user, { recursive: true }).sort()).toEqual(before);
  });

  test('are adopted on request, with a copy of the settings', async () => {
    const settings = '{"version":10,"kubernetes":{"enabled":false}}';
    write(here.settingsFile, settings);
    write(join(here.data, 'lima', 'x'), 'theirs');
    const [notice] = await adopt(true);
    const copy = join(here.config, 'settings.before-rdctl-20300102T030405006Z.json');
    expect(notice).toContain(copy);
    expect(readFileSync(copy, 'utf8')).toBe(settings);
    expect(readFileSync(here.settingsFile, 'utf8')).toBe(settings);
    expect(JSON.parse(readFileSync(here.dropInMarker ?? '', 'utf8'))).toMatchObject({ settingsBefore: copy });
    expect(await adopt(true)).toEqual([]);
  });

  test('are not adopted while it runs', async () => {
    write(here.connectionFile, JSON.stringify({ user: 'user', password: 'x', port: await listening(), pid: 1 }));
    await expect(adopt(true)).rejects.toMatchObject({ code: 'ERR_ALREADY_RUNNING' });
    expect(existsSync(here.dropInMarker ?? '')).toBe(false);
  });
});

test.each(['', '{', '[]', '{"port":"6107"}', '{"port":70000}', '{"port":1}'])(
  'a connection file without a service behind it does not prevent a start: %j',
  async (text) => {
    write(here.connectionFile, text);
    await refuseRunning(here);
  },
);

describe('the log file that scripts read', () => {
  const log = () => readFileSync(join(here.logs, 'background.log'), 'utf8');

  test.each([
    [
      new RdError('ERR_PROFILE_INVALID', 'Invalid deployment file /x: no version specified.'),
      'Failed to load the deployment profile',
    ],
    [
      new RdError('ERR_PROFILE_INVALID', 'Error in deployment profiles:', { details: ['line'] }),
      'Error Starting Rancher Desktop',
    ],
    [new RdError('ERR_SETTINGS_INVALID', 'field "kubernetes.version" is locked'), 'Error Starting Rancher Desktop'],
    [new Error('a bug'), 'Error Starting Rancher Desktop'],
  ])('says that a start failed: %s', async (error, title) => {
    await adopt(false);
    await recordFailedStart(here, error, NOW);
    expect(log()).toContain(`Fatal Error:\n${title}\n\n${error.message}\n`);
    expect(log().startsWith('2030-01-02T03:04:05.006Z: ')).toBe(true);
    await noteProgress(here, 'later', NOW);
    expect(log().endsWith('2030-01-02T03:04:05.006Z: later\n')).toBe(true);
  });

  test('has a refused start in directories of the other application, where nothing else is created', async () => {
    write(join(here.data, 'lima', 'x'), 'theirs');
    await recordFailedStart(here, new Error('refused'), NOW);
    expect(log()).toContain('Fatal Error:\nError Starting Rancher Desktop\n\nrefused\n');
    expect(readdirSync(here.data, { recursive: true }).sort()).toEqual([
      'lima',
      'lima/x',
      'logs',
      'logs/background.log',
    ]);
  });

  test('of a failed start does not make the directories foreign', async () => {
    await recordFailedStart(here, new Error('failed'), NOW);
    expect(await adopt(false)).toEqual([]);
    expect(existsSync(here.dropInMarker ?? '')).toBe(true);
  });

  test('is not written without drop-in mode', async () => {
    const own = places({}, 'linux', user);
    await recordFailedStart(own, new Error('refused'), NOW);
    await noteProgress(own, 'x', NOW);
    expect(existsSync(own.logs)).toBe(false);
  });
});
