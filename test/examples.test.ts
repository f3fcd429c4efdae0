import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadDesired } from '../profiles/document/load.ts';
import type { DriverInfo } from '../src/drivers/driver.ts';
import { host } from '../src/drivers/index.ts';
import { SIMULATED_INFO } from '../src/drivers/machines/simulated/index.ts';
import { makePlan } from '../src/plan/plan.ts';
import { DEFAULT_BLOCKS } from '../src/settings/blocks.gen.ts';
import { defaultSettings } from '../src/settings/defaults.ts';
import { schemaCheck } from './helpers/schema-check.ts';

const validProfile = schemaCheck('profile');

const FILES = readdirSync('examples').filter((name) => /\.(ya?ml|json)$/.test(name));

const CONTEXT = {
  cwd: 'examples',
  env: {},
  platform: 'linux' as const,
  arch: 'x64',
  readStdin: async () => Buffer.alloc(0),
};

/** The plan of an example on a fresh desktop with this driver. */
async function planOf(name: string, driver: DriverInfo) {
  const { desired } = await loadDesired([name], CONTEXT);
  if (!desired) throw new Error(`${name} is not valid`);
  const { plan } = makePlan({
    request: desired.request,
    live: defaultSettings(CONTEXT),
    ...DEFAULT_BLOCKS,
    power: 'stopped',
    locks: {},
    driver,
    observed: {
      machine: { state: 'absent' },
      engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
      cluster: driver.hasCluster ? { state: 'absent' } : { state: 'unsupported' },
    },
    target: { product: 'rdctl', driver: driver.name, simulated: driver.simulated },
    generation: 1,
  });
  return plan;
}

test('there are examples in both forms', () => {
  expect(FILES.length).toBeGreaterThanOrEqual(7);
  expect(FILES.filter((name) => name.endsWith('.json'))).not.toEqual([]);
});

describe.each(FILES)('%s', (name) => {
  test('validates without warnings', async () => {
    const loaded = await loadDesired([name], CONTEXT);
    expect(loaded.findings).toEqual([]);
    expect(loaded.warnings).toEqual([]);
    expect(loaded.desired).toBeDefined();
  });

  test('has an explanation and a row in the table of examples', () => {
    expect(readFileSync('examples/README.md', 'utf8')).toContain(`\`${name}\``);
    if (!name.endsWith('.json')) expect(readFileSync(`examples/${name}`, 'utf8')).toMatch(/^# \S/);
  });

  test('matches the schema that editors use', async () => {
    if (name.endsWith('.json')) return;
    const { parse } = await import('yaml');
    expect(validProfile(parse(readFileSync(`examples/${name}`, 'utf8')))).toBe(true);
  });

  test('can be planned on the simulated driver, with nothing refused', async () => {
    const plan = await planOf(name, SIMULATED_INFO);
    expect(plan.changes.length).toBeGreaterThan(0);
    expect(plan.summary.blocked).toBe(0);
  });
});

describe('on the host driver', () => {
  test.each(['moby.yaml', 'containerd.yaml', 'no-kubernetes.yaml', 'ci.yaml', 'bare-settings.json'])(
    '%s is accepted',
    async (name) => {
      expect((await planOf(name, host)).changes.filter((change) => change.blocked)).toEqual([]);
    },
  );

  test('accepts the list of allowed images', async () => {
    const { changes } = await planOf('locked-down.yaml', host);
    const list = changes.filter((change) => change.path.startsWith('containerEngine.allowedImages.'));
    expect(list).toHaveLength(2);
    expect(list.filter((change) => change.blocked)).toEqual([]);
  });

  test('warns about the cluster that the driver lacks', async () => {
    const plan = await planOf('kubernetes-traefik-off.yaml', host);
    expect(plan.warnings.join()).toContain('kubernetes.options.traefik');
  });
});
