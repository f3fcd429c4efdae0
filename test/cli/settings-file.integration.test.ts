import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { places } from '../../src/state/places.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const tool = builtTool();

/** A home with these two files, and the tool in it. */
function stage(current: string, before?: string) {
  const home = temporaryDirectory();
  const here = places({ RDCTL_HOME: home }, 'linux', '');
  mkdirSync(dirname(here.settingsFile), { recursive: true });
  writeFileSync(here.settingsFile, current);
  if (before !== undefined) writeFileSync(here.previousSettingsFile, before);
  const env = { RDCTL_HOME: home, RDCTL_SIMULATED_LATENCY_MS: '0', RDCTL_DRIVER: 'simulated' };
  const rdctl = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
  onTestFinished(async () => void (await rdctl('shutdown')));
  return { home, here, rdctl };
}

function settings(namespace: string, port: unknown): string {
  const all = defaultSettings({ platform: 'linux', arch: 'x64' });
  Object.assign(all.images, { namespace });
  Object.assign(all.kubernetes, { port });
  return `${JSON.stringify(all, null, 2)}\n`;
}

test('start reports every error in the settings file and the command that restores it, which works', async () => {
  const bad = settings('new', 'many');
  const { here, rdctl } = stage(bad, settings('before', 6443));
  const line = bad.split('\n').findIndex((each) => each.includes('"many"')) + 1;
  for (const command of [['start'], ['serve']]) {
    const { exit, out, err } = await rdctl(...command);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err.split('\n')).toEqual([
      `Error: the settings file ${here.settingsFile} has errors; nothing was started or changed`,
      `${here.settingsFile}:${line}:13: "kubernetes.port" cannot be "many" (/kubernetes/port); expected an integer from 1 to 65535`,
      `Correct it, or remove it and ${here.previousSettingsFile} to begin with default settings, or go back with: mv ${here.previousSettingsFile} ${here.settingsFile}`,
      '',
    ]);
  }
  execFileSync('mv', [here.previousSettingsFile, here.settingsFile]);
  expect(await rdctl('start')).toMatchObject({ exit: 0 });
  expect(JSON.parse((await rdctl('list-settings')).out)).toMatchObject({ images: { namespace: 'before' } });
});

test('start, plan and apply report that the settings file was replaced', async () => {
  const { home, here, rdctl } = stage('{"version": 19,', settings('before', 6443));
  const notice = /^notice: The settings file was not JSON\. .*the settings from before the last change are in effect/m;
  const started = await rdctl('start');
  expect(started).toMatchObject({ exit: 0, out: '', err: expect.stringMatching(notice) });
  // The log of `serve`, which `start` ran.
  expect(readFileSync(join(here.logs, 'service-output.log'), 'utf8')).toMatch(notice);
  const profile = join(home, 'p.json');
  writeFileSync(profile, '{"version":19}');
  for (const command of ['plan', 'apply']) {
    const { exit, out, err } = await rdctl(command, '-f', profile);
    expect({ command, exit }).toEqual({ command, exit: 0 });
    expect(err).toMatch(notice);
    expect(out).not.toContain('notice');
  }
});
