import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { hostTraces } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { type ToolHome, toolHome } from '../helpers/tool-home.ts';

const reason = await whyNoRealEngine();

/** `rdctl shell` with common clients, against the real engines. */
describe.skipIf(reason !== undefined)('a shell for the engine', () => {
  let used: ToolHome | undefined;
  afterEach(async () => {
    if (used) expect(await hostTraces(join(used.home, 'state', 'drivers', 'host'))).toEqual([]);
  });

  test('docker and ctr reach the running engine', async () => {
    const tool = toolHome({ RDCTL_DRIVER: 'host' });
    const { rdctl, rdctlWith, status } = tool;
    expect(await rdctl('start', '--container-engine.name=moby', '--wait')).toMatchObject({ exit: 0 });
    const moby = (await status()).engine.endpoint ?? '';
    expect(await rdctl('shell', 'sh', '-c', 'printf %s "$DOCKER_HOST"')).toEqual({ exit: 0, out: moby, err: '' });
    const elsewhere = { env: { DOCKER_CONTEXT: 'no-such-context', DOCKER_TLS_VERIFY: '1' } };
    const root = await rdctlWith(elsewhere, 'shell', 'docker', 'info', '--format', '{{.DockerRootDir}}');
    expect(root.exit).toBe(0);
    expect(root.out.trim()).toContain(tool.home);

    expect(await rdctl('set', '--container-engine.name=containerd')).toMatchObject({ exit: 0 });
    expect(await rdctl('start', '--wait')).toMatchObject({ exit: 0 });
    const made =
      'ctr version >&2 && ctr namespaces create from-the-shell && ctr namespaces list -q; echo "$CONTAINERD_NAMESPACE"';
    const { exit, out } = await rdctlWith({ stdin: made }, 'shell');
    expect(exit).toBe(0);
    expect(out).toContain('from-the-shell\n');
    expect(out).toMatch(/default\n$/);
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect((await rdctl('shell', 'true')).exit).toBe(1);
    used = tool;
  });
});
