import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { k3sPlaces } from '../../src/drivers/clusters/k3s/config.ts';
import { installedRelease } from '../../src/drivers/clusters/k3s/installation.ts';
import { parseK3s } from '../../src/drivers/clusters/k3s/releases.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { PLACES, scriptedShell } from './scripted-shell.ts';

test.each(['', 'v1.3', '\0\0\0'])(
  'a release that was truncated in the machine (%j) still counts as the last one seen, and deletes no cluster',
  async (text) => {
    const { shell } = scriptedShell();
    const places = k3sPlaces(PLACES);
    const memo = join(temporaryDirectory(), 'memo');
    const installed = installedRelease(shell, places, memo);
    const release = parseK3s('v1.33.4+k3s1');
    if (!release) throw new Error('that is a release');
    await installed.note(release);
    expect(await installed.look()).toEqual(release);
    // Its writer was killed, or the machine was.
    await shell.write(places.version, text);
    expect(await installed.look()).toEqual(release);
    expect(readFileSync(memo, 'utf8')).toBe('v1.33.4+k3s1\n');
    // Nobody knows what nobody has seen.
    writeFileSync(memo, text);
    expect(await installed.look()).toBe('unknown');
  },
);
