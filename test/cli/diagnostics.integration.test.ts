import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';

const stopped = { power: 'stopped', env: { RDCTL_STATIC_CHECKS: '1' } } as const;

test('shows failed checks with their fixes, and fails', async () => {
  const { env } = await startService(stopped);
  const { exit, out, err } = await rdctl(['diagnostics', '--run'], { env });
  expect([exit, err]).toEqual([2, '']);
  expect(out).toContain('failed  STATIC_FALSE  Testing\n        This check never passes.\n        - Start the service');
  expect(out).not.toContain('STATIC_TRUE');
  expect(out).toMatch(/\n\n\d+ of \d+ checks failed; last run \d{4}-\S+Z\n$/);
  expect((await rdctl(['diagnostics', '--all'], { env })).out).toContain('passed  STATIC_TRUE');
});

test('omits and does not count muted checks, unless asked to', async () => {
  const { env, client } = await startService(stopped);
  const { checks } = JSON.parse((await rdctl(['diagnostics', '--run', '-o', 'json'], { env })).out);
  const failing = checks.filter(({ passed }: { passed: boolean }) => !passed);
  const mutedChecks = Object.fromEntries(failing.map(({ id }: { id: string }) => [id, true]));
  await client.putSettings({ version: 19, diagnostics: { mutedChecks } });
  const { exit, out } = await rdctl(['diagnostics'], { env });
  expect(exit).toBe(0);
  expect(out).toMatch(/^none of \d+ checks failed/);
  await client.putSettings({ version: 19, diagnostics: { showMuted: true } });
  const shown = await rdctl(['diagnostics'], { env });
  expect([shown.exit, shown.out.includes('failed  STATIC_FALSE  Testing (muted)')]).toEqual([0, true]);
});

test('says when no check has run yet', async () => {
  const { diagnosticsText } = await import('../../cli/commands/diagnostics.ts');
  const { style } = await import('../../cli/views/text.ts');
  const nothing = { last_update: '1970-01-01T00:00:00.000Z', checks: [] };
  expect(diagnosticsText(nothing, false, style(false))).toContain('rdctl diagnostics --run');
});

test('text from a check cannot move the terminal cursor', async () => {
  const { diagnosticsText } = await import('../../cli/commands/diagnostics.ts');
  const { style } = await import('../../cli/views/text.ts');
  const evil = {
    id: 'A\u001b[2J',
    category: 'B\r',
    description: 'C\u0007',
    passed: false,
    mute: false,
    fixes: [{ description: 'D\n\nE' }],
  };
  const text = diagnosticsText({ last_update: 'F\u001b', checks: [evil] }, false, style(false));
  expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});

test('fails without a service, and accepts no arguments', async () => {
  expect((await rdctl(['diagnostics', 'x'], { env: {} })).exit).toBe(1);
});
