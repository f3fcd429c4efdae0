import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PRODUCT } from '../../src/product.ts';
import { rdctl } from '../helpers/cli.ts';
import { type ToolHome, toolHome } from '../helpers/tool-home.ts';

const PROFILE = 'examples/moby.yaml';
const COMMANDS = [
  ['status'],
  ['plan', '-f', PROFILE],
  ['apply', '-f', PROFILE],
  ['up'],
  ['start'],
  ['set', '--images.namespace=other'],
  ['snapshot', 'create', 'x'],
  ['events'],
  ['reset', '--k8s'],
];

/** A service that says of itself, in the files that it writes, what one of another version says. */
async function serviceOf({ home, rdctl: tool }: ToolHome, facts: { version?: string; revision?: number }) {
  const { exit, err } = await tool('up', PROFILE, '--driver', 'simulated');
  expect(exit, err).toBe(0);
  const lock = join(home, 'state', 'service.lock');
  const [entry = ''] = readdirSync(lock).filter((name) => name.endsWith('.json'));
  for (const path of [join(lock, entry), join(home, 'app-engine.json')]) {
    const { version: _, revision: __, ...rest } = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...rest, ...facts }));
  }
}

test.each([
  ['an older', {}, ' is an older rdctl, and', 'settings, images, containers and volumes stay'],
  [
    'a newer',
    { version: '9.0.0', revision: 99 },
    ' is a newer rdctl 9.0.0 with interface revision 99, and',
    'rdctl shutdown',
  ],
])(
  '%s service is named, not asked; `shutdown` ends it, and the next one has its data',
  async (_which, facts, says, advice) => {
    const tool = toolHome();
    const { home } = tool;
    await serviceOf(tool, facts);
    const pid = tool.servicePid();
    const settings = readFileSync(join(home, 'config', 'settings.json'), 'utf8');
    for (const argv of COMMANDS) {
      const { exit, out, err } = await rdctl(argv, { env: { RDCTL_HOME: home } });
      expect([1, 3], `${argv.join(' ')}: ${out}${err}`).toContain(exit);
      expect(err).toContain(`(pid ${pid}`);
      expect(err).toContain(says);
      expect(err).toContain(`this tool is rdctl ${PRODUCT.version} with interface revision ${PRODUCT.revision}`);
      expect(err).toContain(advice);
    }
    expect(readFileSync(join(home, 'config', 'settings.json'), 'utf8')).toBe(settings);

    // It does not take our word any more, as one that has no such endpoint.
    const file = join(home, 'app-engine.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), password: 'other' }));
    const ended = await tool.rdctl('shutdown');
    expect(ended.exit, ended.err).toBe(0);
    expect(ended.err).toContain('is another version of rdctl; sent SIGTERM');
    expect(existsSync(file)).toBe(false);
    expect((await tool.rdctl('up')).exit).toBe(0);
    expect((await tool.rdctl('plan', '-f', PROFILE)).out).toContain('Nothing to change.');
  },
);

test('`reset --factory` ends a service of another version, and removes what it had', async () => {
  const tool = toolHome();
  await serviceOf(tool, {});
  const { exit, err } = await tool.rdctl('reset', '--factory');
  expect(exit, err).toBe(0);
  expect(existsSync(join(tool.home, 'state'))).toBe(false);
});
