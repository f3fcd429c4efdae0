import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { IntegrationTargets } from '../../src/features/host-integration/targets.ts';
import { DROP_IN_IDENTITY, OWN_IDENTITY } from '../../src/product.ts';
import { temporaryDirectory } from './temp-home.ts';

/** A user with an empty home, on a computer with these shells and no docker engine of its own. */
export function testTargets(options: { shells?: readonly string[]; dropIn?: boolean } = {}): IntegrationTargets {
  const home = temporaryDirectory();
  const programs = temporaryDirectory();
  for (const name of options.shells ?? ['bash']) symlinkSync(process.execPath, join(programs, name));
  const bin = join(home, '.local', 'share', 'rdctl', 'bin');
  mkdirSync(bin, { recursive: true });
  return {
    platform: 'linux',
    identity: options.dropIn ? DROP_IN_IDENTITY : OWN_IDENTITY,
    home,
    dockerConfig: join(home, '.docker'),
    kubeconfigs: [join(home, '.kube', 'config')],
    systemSocket: join(home, 'no-docker.sock'),
    autostartFile: join(home, '.config', 'autostart', 'rdctl.desktop'),
    bin,
    self: ['/usr/bin/node', '/opt/rdctl/rdctl.cjs'],
    searchPath: programs,
    configDirectory: join(home, '.config'),
  };
}
