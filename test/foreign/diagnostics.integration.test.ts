import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { foreignApp } from '../helpers/foreign-app.ts';

const check = (id: string) => ({
  id,
  category: 'Utilities',
  documentation: '',
  description: `about ${id}`,
  passed: false,
  mute: false,
  fixes: [],
});

test.each([[10], [25]] as const)('diagnostics of an application with settings version %i', async (version) => {
  const report = { last_update: '2026-01-02T03:04:05.000Z', checks: [check('ONE'), check('TWO')] };
  const app = await foreignApp({
    version,
    settings: { 'diagnostics.mutedChecks': { TWO: true } },
    intercept: ({ path }) =>
      path === '/v1/diagnostic_checks' ? { status: 200, body: JSON.stringify(report) } : undefined,
  });
  const { exit, out, err } = await rdctl(['diagnostics'], { env: app.env });
  expect({ exit, err }).toEqual({ exit: 2, err: '' });
  expect(out).toContain('failed  ONE');
  expect(out).not.toContain('TWO');
  expect(app.writes()).toEqual([]);
});

test('an application without diagnostics is reported with its answer', async () => {
  const app = await foreignApp({
    version: 19,
    intercept: ({ path }) => (path === '/v1/diagnostic_checks' ? { status: 404, body: 'no such thing' } : undefined),
  });
  expect(await rdctl(['diagnostics'], { env: app.env })).toMatchObject({
    exit: 1,
    out: '',
    err: expect.stringContaining('404 no such thing'),
  });
});
