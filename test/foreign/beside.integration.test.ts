import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { foreignApp } from '../helpers/foreign-app.ts';
import { startService } from '../helpers/service.ts';

// Commands of ours beside an application that runs: none may seem to speak of it, or say that nothing runs.

const LOCAL = [
  { argv: ['history'], says: 'It keeps no history' },
  { argv: ['history', '-o', 'json'], says: 'It keeps no history' },
  { argv: ['history', 'show', '1'], says: 'It keeps no history' },
  { argv: ['history', 'diff', '1', '2'], says: 'It keeps no history' },
  { argv: ['logs'], says: 'Its logs are not read' },
  { argv: ['logs', 'engine'], says: 'Its logs are not read' },
  { argv: ['paths'], says: 'These are the directories of rdctl' },
];

describe('what reads the files of rdctl', () => {
  test('names the application, and changes nothing there', async () => {
    const app = await foreignApp({ version: 19 });
    for (const { argv, says } of LOCAL) {
      const { err } = await rdctl(argv, { env: app.env });
      expect(err, argv.join(' ')).toContain(`notice: Rancher Desktop is running (${app.file}). ${says}`);
    }
    expect(app.writes()).toEqual([]);
  });

  test('is silent where only its file is left, where it never was, and for another home', async () => {
    const app = await foreignApp({ version: 19, intercept: () => ({ status: 404, body: 'Not Found' }) });
    const quiet = async (env: Record<string, string>) => {
      for (const { argv } of LOCAL) expect((await rdctl(argv, { env })).err, argv.join(' ')).not.toContain('notice:');
    };
    await quiet(app.env);
    await quiet((await startService()).env);
    rmSync(app.file);
    await quiet(app.env);
  });
});

test('what asks the application names it', async () => {
  const app = await foreignApp({ version: 19 });
  for (const argv of [[], ['status'], ['doctor'], ['events'], ['kept'], ['release'], ['rollback', '--plan']]) {
    const { out, err } = await rdctl(argv, { env: app.env });
    expect(out + err, argv.join(' ')).toContain('Rancher Desktop');
    expect(out + err, argv.join(' ')).not.toMatch(/No service is running|nothing runs|was changed in this home/);
  }
});
