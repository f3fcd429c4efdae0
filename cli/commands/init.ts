import { arch, homedir, release, totalmem } from 'node:os';
import { resolve } from 'node:path';
import { profileText } from '../../profiles/write.ts';
import { storedSettings } from '../../src/client/offline.ts';
import { defaultSettings, fillDefaults, type Host } from '../../src/settings/defaults.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { places } from '../../src/storage/places.ts';
import { noArguments } from '../arguments.ts';
import { defineCommand, type Invocation } from '../command.ts';
import { writeOutFile } from '../out-file.ts';
import { supportedPlatform } from '../platform.ts';
import { schemaAddress } from '../schema-address.ts';
import { runningService } from '../service.ts';

/** Settings to write down, and what to say about them. */
interface Found {
  settings: Settings;
  state: 'started' | 'stopped';
  origin: string;
}

export const init = defineCommand({
  name: 'init',
  summary: 'Write a profile from the settings that are in force',
  usage: '',
  description: `Only what differs from the defaults is written, unless --all is given. Applied where it was made it
changes nothing. With no service running it describes the stored settings, or the defaults. Secrets are left out.
The first line tells editors where the schema is: they complete names and show mistakes.`,
  flags: {
    'out-file': { type: 'string', summary: 'Write to this file instead of standard output', placeholder: 'FILE' },
    force: { type: 'boolean', summary: 'Overwrite the file if it exists' },
    all: { type: 'boolean', summary: 'Write every setting' },
    schema: { type: 'string', summary: 'Address of the schema for the first line', placeholder: 'PATH' },
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'init');
    const platform = supportedPlatform(io.platform);
    const host: Host = { platform, arch: arch(), osRelease: release(), memoryBytes: totalmem() };
    const path = flags['out-file'] ? resolve(io.cwd, flags['out-file']) : undefined;
    const found = await find(invocation, host);
    const text = profileText({
      ...found,
      defaults: defaultSettings(host),
      all: flags.all ?? false,
      schema: flags.schema ?? schemaAddress(io, path),
    });
    if (path === undefined) io.out(text);
    else await writeOutFile(path, text, { mode: 0o644, replace: flags.force ?? false });
    if (path !== undefined) io.err(`Wrote ${flags['out-file']}. Check it with: rdctl plan -f ${flags['out-file']}\n`);
    return 0;
  },
});

async function find(invocation: Pick<Invocation, 'connect' | 'globals' | 'io'>, host: Host): Promise<Found> {
  const service = await runningService(invocation);
  if (service) {
    const { settings } = await service.client.settings({ signal: invocation.io.signal });
    const { connection, foreign } = service.client;
    const origin = foreign ? `the running application (${connection.file ?? connection.host})` : 'the running service';
    return { settings: fillDefaults(settings, host), state: service.status.power, origin };
  }
  const where = places(invocation.io.env, host.platform, homedir());
  const { policiesOf } = await import('../policies.ts');
  const policies = await policiesOf(invocation.io, host);
  const { settings, from } = await storedSettings(where, host.platform, host, policies);
  return { settings, state: 'started', origin: from === 'file' ? 'the stored settings' : 'the defaults' };
}
