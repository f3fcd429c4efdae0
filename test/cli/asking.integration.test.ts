import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService, type TestService } from '../helpers/service.ts';

interface Asking {
  argv: (home: string) => string[];
  /** Before the command: creates what it will destroy. */
  prepare?: (service: TestService) => Promise<void>;
  /** Whether it did its work. */
  done: (service: TestService) => Promise<boolean>;
  /** For a plan, a script must allow data loss; other commands imply it. */
  scripts: number;
}

const cluster = (version: string) => ({ version: 19, kubernetes: { enabled: true, version } });
const resets = async ({ client }: TestService) => (await client.status()).counters.resets > 0;

const COMMANDS: Readonly<Record<string, Asking>> = {
  'reset --k8s': {
    argv: () => ['reset', '--k8s'],
    done: resets,
    scripts: 0,
  },
  'reset --factory': {
    argv: () => ['reset', '--factory'],
    prepare: ({ service }) => service.stop('it has ended'),
    done: async ({ here }) => !existsSync(here.settingsFile),
    scripts: 0,
  },
  'factory-reset': {
    argv: () => ['factory-reset'],
    prepare: ({ service }) => service.stop('it has ended'),
    done: async ({ here }) => !existsSync(here.settingsFile),
    scripts: 0,
  },
  'snapshot restore': {
    argv: () => ['snapshot', 'restore', 'before'],
    async prepare({ client, env }) {
      expect((await rdctl(['snapshot', 'create', 'before'], { env })).exit).toBe(0);
      await client.putSettings({ version: 19, images: { namespace: 'after' } });
    },
    done: async ({ client }) => leafAt((await client.settings()).settings, 'images.namespace') !== 'after',
    scripts: 0,
  },
  apply: {
    argv: (home) => ['apply', '-f', join(home, 'older.json')],
    async prepare({ client, converged, home }) {
      await client.putSettings(cluster('1.33.4'));
      await converged();
      writeFileSync(join(home, 'older.json'), JSON.stringify(cluster('1.32.8')));
    },
    done: resets,
    scripts: 5,
  },
};

describe.each(Object.entries(COMMANDS))('%s', (_name, { argv, prepare, done, scripts }) => {
  async function stage() {
    const service = await startService({ power: 'started' });
    await service.converged();
    await prepare?.(service);
    return { service, command: argv(service.home), env: service.env };
  }

  test('prompts on a terminal, and does nothing unless the answer is the word yes', async () => {
    const { service, command, env } = await stage();
    for (const typed of ['no', 'y', '', undefined]) {
      const ask = vi.fn(async () => typed);
      const { exit, err } = await rdctl(command, { env, interactive: true, ask });
      expect(exit, err).not.toBe(0);
      expect(err).toMatch(/Nothing was changed\.\n$/);
      expect(ask).toHaveBeenCalledOnce();
      expect(await done(service)).toBe(false);
    }
    expect(await rdctl(command, { env, interactive: true, ask: async () => ' yes ' })).toMatchObject({ exit: 0 });
    expect(await done(service)).toBe(true);
  });

  test('does not prompt with --yes', async () => {
    const { service, command, env } = await stage();
    expect(await rdctl([...command, '--yes'], { env, interactive: true })).toMatchObject({ exit: 0 });
    expect(await done(service)).toBe(true);
  });

  test('does not prompt in a script', async () => {
    const { service, command, env } = await stage();
    expect(await rdctl(command, { env })).toMatchObject({ exit: scripts });
    expect(await done(service)).toBe(scripts === 0);
  });
});
