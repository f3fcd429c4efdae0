import { expect, test } from 'vitest';
import { startApi } from '../helpers/api.ts';

const muted = (count: number) => ({
  diagnostics: { mutedChecks: Object.fromEntries(Array.from({ length: count }, (_, at) => [`CHECK_${at}`, true])) },
});
const patterns = (count: number, text = (at: number) => `registry.example/${at}`) => ({
  containerEngine: { allowedImages: { patterns: Array.from({ length: count }, (_, at) => text(at)) } },
});

interface Reply {
  status: number;
  document: { changes: { path: string; blocked?: object }[]; warnings: string[] };
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

test('extensions are compared with patterns of allowed images by name, and with those that have stars up to a limit', async () => {
  const installed = Object.fromEntries(Array.from({ length: 1_900 }, (_, at) => [`example/tool-${at}`, '1']));
  const warningsWith = async (pattern: (at: number) => string) => {
    const allowedImages = { enabled: true, patterns: Array.from({ length: 9_900 }, (_, at) => pattern(at)) };
    const reply = await plan({ application: { extensions: { installed } }, containerEngine: { allowedImages } });
    return reply.document.warnings.filter((warning) => /extension/.test(warning));
  };
  expect(await warningsWith((at) => `example/tool-${at}`)).toEqual([]);
  expect(await warningsWith((at) => `registry.example/tool-${at}`)).toHaveLength(1_900);
  // Each with each took seven seconds.
  const stars = await warningsWith((at) => `example/*o*o*l*-*x${at}`);
  expect(stars.at(-1)).toMatch(/^Whether the allowed images include another 1\d{3} extensions was not looked up/);
}, 15_000);

test('of patterns that match nothing, the first are named and the others counted', async () => {
  const { document } = await plan(patterns(9_900, (at) => `registry.example//${at}`));
  const about = document.warnings.filter((warning) => warning.includes('allowedImages.patterns'));
  expect(about).toHaveLength(21);
  expect(about.at(-1)).toBe('Another 9880 patterns in "containerEngine.allowedImages.patterns" match nothing.');
});
