import { expect, test } from 'vitest';
import { startApi } from '../helpers/api.ts';

const muted = (count: number) => ({
  diagnostics: { mutedChecks: Object.fromEntries(Array.from({ length: count }, (_, at) => [`CHECK_${at}`, true])) },
});
const patterns = (count: number) => ({
  containerEngine: { allowedImages: { patterns: Array.from({ length: count }, (_, at) => `registry.example/${at}`) } },
});

interface Reply {
  status: number;
  document: { changes: { path: string; blocked?: object }[] };
}

async function plan(settings: object): Promise<Reply> {
  const body = JSON.stringify({ settings: { version: 19, ...settings }, state: 'unmanaged', prune: [] });
  const answer = await startApi().client.request({ method: 'POST', path: '/v2/plan', body });
  return { status: answer.status, document: JSON.parse(answer.body.toString()) };
}

const changesOf = ({ document }: Reply, path: string) => document.changes.filter((change) => change.path === path);

test('a plan takes as much as anyone writes, and refuses what would occupy the service', async () => {
  expect(changesOf(await plan(muted(1_900)), 'diagnostics.mutedChecks')).toHaveLength(1_900);
  expect(changesOf(await plan(patterns(9_900)), 'containerEngine.allowedImages.patterns')).toHaveLength(1);
  for (const settings of [muted(60_000), patterns(60_000), { unknown: muted(60_000) }]) {
    expect(await plan(settings)).toMatchObject({
      status: 400,
      document: {
        code: 'ERR_SETTINGS_INVALID',
        message: expect.stringMatching(
          /^the request has \d+ keys, and \d+ more parts in lists; the most are 2000 and 10000$/,
        ),
      },
    });
  }
});

test('the largest number of extensions is compared with the longest list of allowed ones', async () => {
  const installed = Object.fromEntries(Array.from({ length: 1_900 }, (_, at) => [`example/tool-${at}`, '1']));
  const list = Array.from({ length: 9_900 }, (_, at) => `registry.example/tool-${at}`);
  const reply = await plan({
    application: { extensions: { allowed: { enabled: true, list }, installed } },
  });
  const changes = changesOf(reply, 'application.extensions.installed');
  expect(changes.filter(({ blocked }) => blocked)).toHaveLength(1_900);
  // Parsing the list anew for each extension took half a minute.
}, 15_000);
